package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"listwatch/internal/check/assert"
)

// smallTemp is the environment variable that makes this test binary run [onSmallTemp]. Its value is "DIR:BYTES".
const smallTemp = "VIZ_TEST_SMALL_TEMP"

func init() {
	if dir, free, ok := strings.Cut(os.Getenv(smallTemp), ":"); ok {
		onSmallTemp(dir, free)
	}
}

// onSmallTemp mounts dir with room for free bytes, runs the program with dir as TMPDIR, prints what is left, and exits.
func onSmallTemp(dir, free string) {
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitUsage)
		}
	}
	bytes, err := strconv.Atoi(free)
	must(err)
	const all = 32 << 20
	must(syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", all)))
	must(os.WriteFile(filepath.Join(dir, "other"), make([]byte, all-bytes), 0o600))
	must(os.Setenv("TMPDIR", dir))
	args := []string{"-listen", "127.0.0.1:0", "-flight=off", "-demo=false"}
	status := run(context.Background(), args, filler{}, os.Stderr)
	left, err := os.ReadDir(dir)
	must(err)
	for _, each := range left {
		if each.Name() != "other" {
			fmt.Fprintln(os.Stderr, "left behind:", each.Name())
		}
	}
	os.Exit(status)
}

// filler is the program's stdout: when the program listens, filler begins to fill the disk with clients' writes.
type filler struct{}

func (filler) Write(line []byte) (int, error) {
	go fill(strings.TrimSpace(strings.TrimPrefix(string(line), "listening on ")))
	return len(line), nil
}

// TestATempFolderWithoutRoomIsOneLineAndIsLeftAsItWas starts the program in a process that has its own mounts.
func TestATempFolderWithoutRoomIsOneLineAndIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for _, free := range []string{"0", "100000", "1600000", "12000000"} {
		t.Run(free+" bytes free", func(t *testing.T) {
			t.Parallel()
			child, stderr := child(t, smallTemp+"="+t.TempDir()+":"+free)
			child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			if os.Getuid() != 0 {
				child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			}
			err := child.Run()
			var exit *exec.ExitError
			assert.True(t, errors.As(err, &exit) && exit.ExitCode() == exitError, "got %v, want exit status 1", err)
			said := stderr.String()
			assert.True(t, strings.Count(said, "\n") == 1 &&
				strings.Contains(said, "The disk is full: make room there"), "got %q", said)
		})
	}
}

package etcdnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk names the environment variable by which this test binary, run again, becomes [onSmallDisk].
const smallDisk = "ETCDNODE_TEST_SMALL_DISK"

func init() {
	if dir, megabytes, ok := strings.Cut(os.Getenv(smallDisk), ":"); ok {
		onSmallDisk(dir, megabytes)
	}
}

// onSmallDisk starts etcd on a disk with as many megabytes as asked, and writes until etcd cannot go on.
func onSmallDisk(dir, megabytes string) {
	must := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	must(syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+megabytes+"m"))
	node, err := Start(context.Background(), Options{Dir: filepath.Join(dir, "data")})
	must(err)
	go func() {
		value := strings.Repeat("x", 300<<10)
		for i := range 1000 {
			_, _ = node.Client().Put(context.Background(), strconv.Itoa(i), value)
		}
	}()
	<-node.Broken()
	must(errors.Join(node.Close(), os.RemoveAll(filepath.Join(dir, "data")), node.Err()))
}

// runOnSmallDisk returns what the other process prints. It has mounts of its own: they go with it.
func runOnSmallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), smallDisk+"="+t.TempDir()+":"+strconv.Itoa(megabytes))
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { child.Process.Kill() })
	defer timer.Stop()
	if err := child.Wait(); child.ProcessState.ExitCode() != 1 {
		t.Errorf("got %v, want exit status 1", err)
	}
	return out.String()
}

func TestAFullDiskIsSaid(t *testing.T) {
	said := runOnSmallDisk(t, 16)
	if !strings.Contains(said, "no space left on device. The disk is full: make room there") || strings.Count(said, "\n") != 1 {
		t.Errorf("got %q", said)
	}
}

func TestADiskWithoutRoomIsSaidBeforeTheStart(t *testing.T) {
	said := runOnSmallDisk(t, 4)
	if !strings.Contains(said, "bytes are free") || !strings.Contains(said, "The disk is full: make room there") || strings.Count(said, "\n") != 1 {
		t.Errorf("got %q", said)
	}
}

func TestAFolderThatIsGoneIsSaid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	node := start(t, dir)
	put(t, node.Client(), "a", "1")
	node.trouble.checkFolder(dir)
	if err := node.Err(); err != nil {
		t.Fatalf("while it is there: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	<-node.Broken()
	err := node.Err()
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "The folder is gone") {
		t.Errorf("got %v", err)
	}
}

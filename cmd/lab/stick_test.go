//go:build full && unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"listwatch/internal/check/require"
)

// desk simulates another computer with Go: commands run in its folder with its environment variables.
type desk struct {
	dir string
	env []string
}

// newDesk returns a desk with empty caches. settings are more environment variables, as NAME=value.
func newDesk(t *testing.T, dir string, settings ...string) *desk {
	t.Helper()
	d := &desk{dir: dir, env: append(settings, "GOFLAGS=-modcacherw", "PATH="+os.Getenv("PATH"))}
	for _, name := range []string{"HOME", "TMPDIR", "GOPATH", "GOCACHE", "GOMODCACHE"} {
		d.env = append(d.env, name+"="+t.TempDir())
	}
	return d
}

// types runs a command and types input into it. If enough is set, it interrupts the command when enough is printed.
func (d *desk) types(t *testing.T, command, input string, enough ...string) (said string, err error) {
	t.Helper()
	t.Log(command)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env, cmd.Stdin = d.dir, d.env, strings.NewReader(input)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) } // the same as Ctrl-C
	out := &output{enough: strings.Join(enough, ""), stop: cancel}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	return out.text.String(), err
}

// output keeps a command's output. Unless enough is "", it stops the command as soon as the output contains enough. It
// needs no lock, because only one goroutine of package exec writes to it.
type output struct {
	text   bytes.Buffer
	enough string
	stop   context.CancelFunc
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.text.Write(p)
	if o.enough != "" && strings.Contains(o.text.String(), o.enough) {
		o.stop()
	}
	return n, err
}

// TestAStickIsEnough fills a USB stick as docs/WORKSHOP.md describes, and works from it without a network.
func TestAStickIsEnough(t *testing.T) {
	stick, blocks := t.TempDir(), typed(t, 2, "WORKSHOP.md")
	run := func(d *desk, commands []string) {
		for _, command := range commands {
			said, err := d.types(t, strings.ReplaceAll(command, "/media/stick", stick), "")
			require.NoError(t, err, said)
		}
	}
	ask := func(name string) string {
		value := require.Value(exec.Command("go", "env", name).Output())(t)
		return strings.TrimSpace(string(value))
	}
	// Modules that this computer already has are copied from its cache instead of being downloaded again.
	run(newDesk(t, repository, "GOPROXY=file://"+ask("GOMODCACHE")+"/cache/download,"+ask("GOPROXY"),
		"GOSUMDB="+ask("GOSUMDB"), "GOTOOLCHAIN=local"), blocks[0])

	attendee := newDesk(t, filepath.Join(stick, "listwatch"), "HTTP_PROXY=http://127.0.0.1:1",
		"HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1,localhost")
	run(attendee, blocks[1])
	for _, each := range []struct{ command, input, says string }{
		{"go run ./cmd/viz -listen 127.0.0.1:0 -flight off", "", "listening on http://"},
		{"go run ./cmd/lab start neighbours", "", "go run ./cmd/lab check neighbours"},
		{"go run ./cmd/lab check neighbours", "", "Not yet. The promise that does not hold"},
		{"make debug RECIPE=slow-watcher", "print c.budget.budget\nexit\n", "\n0\n"},
	} {
		enough := ""
		if strings.HasPrefix(each.says, "listening") {
			enough = each.says
		}
		said, err := attendee.types(t, each.command, each.input, enough)
		require.True(t, strings.Contains(said, each.says), "%s: %v, without %q:\n%s",
			each.command, err, each.says, said)
	}
}

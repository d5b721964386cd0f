package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// checkPatience is how long one command may take: with an empty cache everything is built.
const checkPatience = 45 * time.Minute

// attendee has Go, a bag and no network.
type attendee struct {
	dir string // the unpacked sources
	env []string
	out io.Writer
}

// check does with a bag what an attendee does, with empty caches and no network.
func check(ctx context.Context, file string, out io.Writer) (err error) {
	temp, err := os.MkdirTemp("", "listwatch-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	sub := func(name string) string { return filepath.Join(temp, name) }
	if err := unpack(file, "", sub("bag")); err != nil {
		return err
	}
	if err := unpack(filepath.Join(sub("bag"), sourcesName), "", sub("sources")); err != nil {
		return err
	}
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(sub(name), 0o755); err != nil {
			return err
		}
	}
	a := &attendee{dir: filepath.Join(sub("sources"), "listwatch"), out: out, env: append(os.Environ(),
		"GOPROXY=file://"+slashed(filepath.Join(sub("bag"), modulesName)), "GOSUMDB=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", "GOENV=off",
		"GOMODCACHE="+sub("modules"), "GOCACHE="+sub("cache"), "GOPATH="+sub("path"), "HOME="+sub("home"), "TMPDIR="+sub("tmp"), "TMP="+sub("tmp"),
		// Whatever asks the network is refused at once.
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1,localhost",
	)}
	return a.everything(ctx)
}

// slashed is a path as it stands in a file URL: /D:/x on Windows.
func slashed(name string) string {
	return "/" + strings.TrimPrefix(filepath.ToSlash(name), "/")
}

func (a *attendee) everything(ctx context.Context) error {
	steps := []struct {
		says    string // what the command must print
		fails   bool   // and exit with an error
		serves  bool   // until it is interrupted
		input   string
		command []string
	}{
		{command: []string{"go", "build", "-o", "bin/viz.exe", "./cmd/viz"}},
		{says: "listening on http://", serves: true, command: []string{filepath.Join(a.dir, "bin", "viz.exe"), "-listen", "127.0.0.1:0", "-flight", "off"}},
		{says: "ok  \tlistwatch/chapters/15-pipeline", command: []string{"go", "test", "./chapters/..."}},
		{says: "go run ./cmd/lab check neighbours", command: []string{"go", "run", "./cmd/lab", "start", "neighbours"}},
		{says: "Not yet. The promise that does not hold", fails: true, command: []string{"go", "run", "./cmd/lab", "check", "neighbours"}},
		{says: "k8s.io/kubernetes/cmd/kube-apiserver/app\n", command: []string{"go", "-C", "internal/compat/kubeapiserver", "list", "-deps", "."}},
		{says: "k8s.io/kubectl/pkg/cmd\n", command: []string{"go", "-C", "internal/compat/oldkubectl", "list", "-deps", "."}},
		{says: "Version: ", command: []string{"go", "tool", "-modfile=internal/tools/go.mod", "dlv", "version"}},
		{command: []string{"go", "test", "-c", "-gcflags=listwatch/...=-N -l", "-o", "bin/debugged", "./chapters/06-cacher"}},
		{says: "0\n", input: "print c.budget.budget\nexit\n", command: []string{"go", "tool", "-modfile=internal/tools/go.mod", "dlv", "exec", "bin/debugged",
			"--allow-non-terminal-interactive=true", "--wd", "chapters/06-cacher", "--init", "docs/recipes/slow-watcher.dlv", "--", "-test.run", "TestASlowWatcherCosts"}},
	}
	for _, step := range steps {
		line := strings.Join(step.command, " ")
		began := time.Now()
		enough := ""
		if step.serves {
			enough = step.says
		}
		said, err := a.run(ctx, step.command, step.input, enough)
		if (err != nil) != step.fails || !strings.Contains(said, step.says) {
			return fmt.Errorf("%s: %v, without %q:\n%s", line, err, step.says, said)
		}
		fmt.Fprintf(a.out, "%6s  %s\n", time.Since(began).Round(time.Second), line)
	}
	return nil
}

// run runs a command, and interrupts it when it has said enough, if that is not "".
func (a *attendee) run(ctx context.Context, command []string, input, enough string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = a.dir, a.env, strings.NewReader(input)
	cmd.WaitDelay = 10 * time.Second
	cmd.Cancel = func() error {
		if runtime.GOOS == "windows" {
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	said := &heard{enough: enough, stop: cancel}
	cmd.Stdout, cmd.Stderr = said, said
	err := cmd.Run()
	if enough != "" && errors.Is(err, context.Canceled) {
		err = nil // it ended as it was asked to
	}
	return said.String(), err
}

// heard keeps what a command prints, and stops it when it has said enough.
type heard struct {
	mu     sync.Mutex
	text   bytes.Buffer
	enough string
	stop   func()
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.text.Write(p)
	if h.enough != "" && strings.Contains(h.text.String(), h.enough) {
		h.stop()
	}
	return n, err
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

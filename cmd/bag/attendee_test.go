//go:build full

package bag

import (
	"archive/zip"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"listwatch/internal/check/require"
)

var bag = flag.String("bag", "", "work from the bag in `file` instead of one that is made")

// attendee has Go, a bag, empty caches and no network.
type attendee struct {
	dir string // the sources
	env []string
}

func newAttendee(t *testing.T) *attendee {
	t.Helper()
	temp := t.TempDir()
	file := filepath.Join(temp, "bag.zip")
	if *bag != "" {
		file = *bag
	} else {
		said, err := script(t, "../..", "pack", file, runtime.GOOS+"/"+runtime.GOARCH)
		require.NoError(t, err, "%s", said)
	}
	reader, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, os.CopyFS(filepath.Join(temp, "bag"), reader))
	a := &attendee{dir: filepath.Join(temp, "bag", "listwatch"), env: append(os.Environ(),
		"GOPROXY=file://"+filepath.Join(temp, "bag", "modules"), "GOSUMDB=off", "GOTOOLCHAIN=local",
		"GOENV=off",
		"GOFLAGS=-modcacherw", "HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
		"NO_PROXY=127.0.0.1,localhost")}
	for _, name := range []string{"HOME", "TMPDIR", "TMP", "GOPATH", "GOCACHE", "GOMODCACHE"} {
		require.NoError(t, os.Mkdir(filepath.Join(temp, name), 0o755))
		a.env = append(a.env, name+"="+filepath.Join(temp, name))
	}
	return a
}

// TestAnAttendeeWorksFromTheBag types what the workshop asks for, in the order of its blocks.
func TestAnAttendeeWorksFromTheBag(t *testing.T) {
	a := newAttendee(t)
	programs := filepath.Join(a.dir, "..", "bin", runtime.GOOS+"-"+runtime.GOARCH)
	for _, each := range []struct {
		says    string // what the command must print
		fails   bool   // and exit with an error
		serves  bool   // until it is interrupted
		input   string
		command string
	}{
		{command: "go build -o bin/viz.exe ./cmd/viz"},
		{says: "listening on http://", serves: true, command: filepath.Join(a.dir, "bin", "viz.exe") +
			" -listen 127.0.0.1:0 -flight off"},
		{says: "listening on http://", serves: true, command: filepath.Join(programs, "viz") +
			" -listen 127.0.0.1:0 -flight off"},
		{says: "Client Version: v1.", command: filepath.Join(programs, "kubectl") + " version --client"},
		{says: "Version: ", command: filepath.Join(programs, "dlv") + " version"},
		{says: "ok  \tlistwatch/chapters/15-pipeline", command: "go test ./chapters/..."},
		{says: "go run ./cmd/lab check neighbours", command: "go run ./cmd/lab start neighbours"},
		{says: "Not yet. The promise that does not hold", fails: true, command: "go run ./cmd/lab check neighbours"},
		{command: "go -C internal/check/compat vet ./kubectl"},
		{says: "Version: ", command: "go tool -modfile=internal/check/tools/go.mod dlv version"},
		{command: "go test -c -gcflags=listwatch/...=-N\u00a0-l -o bin/debugged ./chapters/06-cacher"},
		{says: "0\n", input: "print c.budget.budget\nexit\n", command: "go tool -modfile=internal/check/tools/go.mod " +
			"dlv exec bin/debugged " +
			"--allow-non-terminal-interactive=true --wd chapters/06-cacher --init docs/recipes/slow-watcher.dlv -- " +
			"-test.run TestASlowWatcherCosts"},
	} {
		enough := ""
		if each.serves {
			enough = each.says
		}
		said, err := a.run(t.Context(), each.command, each.input, enough)
		require.True(t, (err != nil) == each.fails && strings.Contains(said, each.says),
			"%s: %v, without %q:\n%s", each.command, err, each.says, said)
		t.Log(each.command)
	}
}

// run runs a command, and interrupts it when it has said enough, if that is not "".
func (a *attendee) run(ctx context.Context, command, input, enough string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	words := strings.Split(command, " ")
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "\u00a0", " ") // inside one word
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = a.dir, a.env, strings.NewReader(input)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	said := &heard{enough: enough, stop: cancel}
	cmd.Stdout, cmd.Stderr = said, said
	err := cmd.Run()
	if enough != "" && errors.Is(err, context.Canceled) {
		err = nil // it ended as it was asked to
	}
	return said.text.String(), err
}

// heard keeps what a command prints, and stops it when it has said enough.
type heard struct {
	mu     sync.Mutex
	text   strings.Builder
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

// TestEveryToolCanBeBuiltForEverySystem asks the go command for each program's modules: it refuses a program that a
// system cannot have.
func TestEveryToolCanBeBuiltForEverySystem(t *testing.T) {
	for _, system := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64",
		"windows/arm64"} {
		for _, program := range []string{"viz", "kubectl", "dlv"} {
			if said, err := script(t, "../..", "licences", system, program); err != nil {
				t.Errorf("%s for %s: %v: %s", program, system, err, said)
			}
		}
	}
}

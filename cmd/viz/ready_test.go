package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fakeMachine is a computer that has everything, but for what a test takes away.
type fakeMachine struct {
	goos    string
	on      []string          // the PATH
	says    map[string]string // the beginning of a command line → stdout
	fails   map[string]error  // the beginning of a command line → why it fails
	port    error
	temp    error
	free    int64
	unknown bool // how much is free
}

func healthy() *fakeMachine {
	return &fakeMachine{
		goos: "linux", on: []string{"go", "kubectl", "chromium"}, free: 2 << 30,
		says: map[string]string{
			"go list -m ":       "listwatch /src\n",
			"go env GOVERSION":  "go1.26.8\n",
			"kubectl version":   "Client Version: v1.37.2\nKustomize Version: v5.7.1\n",
			"go list -deps ":    "fmt\n",
			"go tool -modfile=": "Delve Debugger\nVersion: 1.27.2\nBuild: $Id$\n",
		},
		fails: map[string]error{},
	}
}

func (f *fakeMachine) machine() machine {
	return machine{
		goos: f.goos, tempDir: "/tmp",
		lookPath: func(file string) (string, error) {
			if !slices.Contains(f.on, file) {
				return "", errors.New("not found")
			}
			return "/bin/" + file, nil
		},
		run: func(_ context.Context, _, name string, args ...string) (string, error) {
			line := name + " " + strings.Join(args, " ")
			for prefix, err := range f.fails {
				if strings.HasPrefix(line, prefix) {
					return "", err
				}
			}
			for prefix, out := range f.says {
				if strings.HasPrefix(line, prefix) {
					return out, nil
				}
			}
			return "", errors.New("no such command: " + line)
		},
		listen:    func(string) error { return f.port },
		write:     func(string) error { return f.temp },
		freeSpace: func(string) (int64, bool) { return f.free, !f.unknown },
	}
}

// ask returns what -ready prints, and its exit status.
func (f *fakeMachine) ask(t *testing.T) (string, int) {
	t.Helper()
	var out strings.Builder
	status := ready(t.Context(), f.machine(), "127.0.0.1:8080", &out)
	return out.String(), status
}

func TestAMachineWithEverythingIsReady(t *testing.T) {
	const want = `ok  go 1.26.8
ok  kubectl 1.37.2
ok  port 127.0.0.1:8080 is free
ok  browser /bin/chromium
ok  temporary folder /tmp
ok  2048 MB are free in /tmp
ok  all modules are in the cache
ok  debugger dlv 1.27.2, the pinned one
ready
`
	if got, status := healthy().ask(t); got != want || status != exitOK {
		t.Errorf("got status %d and\n%swant\n%s", status, got, want)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	without := func(name string) func(*fakeMachine) {
		return func(f *fakeMachine) { f.on = slices.DeleteFunc(f.on, func(each string) bool { return each == name }) }
	}
	failing := func(command, why string) func(*fakeMachine) {
		return func(f *fakeMachine) { f.fails[command] = errors.New(why) }
	}
	saying := func(command, out string) func(*fakeMachine) {
		return func(f *fakeMachine) { f.says[command] = out }
	}
	for name, each := range map[string]struct {
		change func(*fakeMachine)
		want   string
	}{
		"no go":                   {without("go"), "!!  no go on the PATH: install 1.26 or newer\n"},
		"go fails":                {failing("go env", "exit status 2: what"), "!!  go env GOVERSION: exit status 2: what\n"},
		"an old go":               {saying("go env GOVERSION", "go1.25.9\n"), "!!  go 1.25.9 is too old: install 1.26 or newer\n"},
		"no kubectl":              {without("kubectl"), "!!  no kubectl on the PATH: install 1.26 or newer\n"},
		"kubectl fails":           {failing("kubectl", "exit status 1"), "!!  kubectl version --client: exit status 1\n"},
		"an old kubectl":          {saying("kubectl version", `Client Version: version.Info{Major:"1", GitVersion:"v1.25.16-gke.1"}`), "!!  kubectl 1.25.16-gke.1 is too old: install 1.26 or newer\n"},
		"no version at all":       {saying("kubectl version", "Client Version"), "!!  kubectl version --client: it says no version\n"},
		"the port is taken":       {func(f *fakeMachine) { f.port = syscall.EADDRINUSE }, "!!  port 127.0.0.1:8080 is taken: use -listen 127.0.0.1:0\n"},
		"taken, on Windows":       {func(f *fakeMachine) { f.port = syscall.Errno(10048) }, "!!  port 127.0.0.1:8080 is taken: use -listen 127.0.0.1:0\n"},
		"the port is not allowed": {func(f *fakeMachine) { f.port = syscall.EACCES }, "!!  cannot listen at 127.0.0.1:8080: "},
		"no browser":              {without("chromium"), "!!  no browser on the PATH: install firefox or chromium\n"},
		"no temporary folder":     {func(f *fakeMachine) { f.temp = errors.New("read-only") }, "!!  cannot write in the temporary folder: read-only; set TMPDIR to another\n"},
		"no temporary folder on Windows": {func(f *fakeMachine) {
			f.goos, f.on, f.temp = "windows", append(f.on, "rundll32"), errors.New("read-only")
		}, "read-only; set TMP to another\n"},
		"no space":    {func(f *fakeMachine) { f.free = 5 << 20 }, "!!  5 MB are free in /tmp: make it 1024\n"},
		"no modules":  {failing("go list -deps", "exit status 1: GOPROXY=off"), "!!  modules are missing: run go mod download while there is a network (exit status 1: GOPROXY=off)\n"},
		"no debugger": {failing("go tool", "exit status 1"), "!!  no debugger: run go tool -modfile=internal/check/tools/go.mod dlv version while there is a network\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			each.change(f)
			got, status := f.ask(t)
			if !strings.Contains(got, each.want) || !strings.HasSuffix(got, "\nnot ready: repair what the lines with !! say (1)\n") || status != exitError {
				t.Errorf("got status %d and\n%swant %q", status, got, each.want)
			}
		})
	}
}

func TestWhatIsNotNeededKeepsNoMachineFromBeingReady(t *testing.T) {
	for name, each := range map[string]struct {
		change func(*fakeMachine)
		want   string
	}{
		"a release on a machine without go": {func(f *fakeMachine) { f.on, f.fails["go "] = []string{"kubectl", "chromium"}, errors.New("not found") }, "--  no go on the PATH: install 1.26 or newer: labs, tests and the debugger need it\n"},
		"a release elsewhere":               {func(f *fakeMachine) { f.says["go list -m "] = "example.com/other /other\n" }, "ok  go 1.26.8\n"},
		"Windows":                           {func(f *fakeMachine) { f.goos, f.on, f.unknown = "windows", []string{"go", "kubectl", "rundll32"}, true }, "--  free space: not known on windows; 1024 MB are enough\n"},
		"darwin":                            {func(f *fakeMachine) { f.goos, f.on = "darwin", []string{"go", "kubectl", "open"} }, "ok  browser /bin/open\n"},
		"a dlv on the PATH": {func(f *fakeMachine) {
			f.on, f.says["dlv version"], f.fails["go tool"] = append(f.on, "dlv"), "Version: 1.26.0\n", errors.New("not asked")
		}, "ok  debugger dlv 1.26.0\n"},
		"a dlv on the PATH that does not know this Go": {func(f *fakeMachine) {
			f.on, f.says["dlv version"] = append(f.on, "dlv"), "Version: 1.20.2\n"
		}, "ok  debugger dlv 1.27.2, the pinned one\n"},
		"a go between releases": {func(f *fakeMachine) { f.says["go env GOVERSION"] = "devel go1.28-abc\n" }, "ok  go 1.28-abc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			each.change(f)
			if got, status := f.ask(t); !strings.Contains(got, each.want) || !strings.HasSuffix(got, "\nready\n") || status != exitOK {
				t.Errorf("got status %d and\n%swant %q", status, got, each.want)
			}
		})
	}
}

// TestReadyAsksThisMachine looks at the real look-ups where their answer is known.
func TestReadyAsksThisMachine(t *testing.T) {
	m := thisMachine()
	if root, err := filepath.Abs("../.."); err != nil || m.checkout(t.Context()) != root {
		t.Errorf("checkout: got %q, want %q, %v", m.checkout(t.Context()), root, err)
	}
	if got, err := m.version(t.Context(), "..", oldestGo, "go", "env", "GOVERSION"); err != nil {
		t.Errorf("go: got %v, %v", got, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.port(listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Errorf("a taken port: got %v, %v", got, err)
	}
	listener.Close()
	if got, err := m.port("127.0.0.1:0"); err != nil {
		t.Errorf("a free port: got %v, %v", got, err)
	}
	if err := tryWrite(filepath.Join(t.TempDir(), "gone")); err == nil {
		t.Error("a folder that does not exist can be written")
	}
	temp := t.TempDir()
	if err := tryWrite(temp); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(temp); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
	if _, err := runCommand(t.Context(), "", "go", "no-such-command"); err == nil || !strings.Contains(err.Error(), "no-such-command") {
		t.Errorf("a command that fails: got %v", err)
	}
}

func TestTheOldestGoIsThatOfTheModule(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil || !strings.Contains(string(text), "\n"+"go "+oldestGo+".0\n") {
		t.Errorf("go.mod does not say %s, %v", oldestGo, err)
	}
}

func TestTheVersionIsSaid(t *testing.T) {
	var out strings.Builder
	if status := run(t.Context(), []string{"-version"}, &out, io.Discard); status != exitOK || !strings.HasPrefix(out.String(), "listwatch devel, as Kubernetes v1.37.2, go1.") {
		t.Errorf("status %d, %q", status, &out)
	}
}

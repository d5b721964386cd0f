package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// fakeMachine is a computer that has everything, but for what a test takes away.
type fakeMachine struct {
	on   []string          // the PATH
	says map[string]string // the beginning of a command line → stdout; "!" and why it fails
}

func healthy() *fakeMachine {
	return &fakeMachine{
		on: []string{"go", "kubectl", "chromium"},
		says: map[string]string{
			"go list -m ":       "listwatch /src\n",
			"go env GOVERSION":  "go1.26.8\n",
			"kubectl version":   "Client Version: v1.37.2\nKustomize Version: v5.7.1\n",
			"go list -deps ":    "fmt\n",
			"go tool -modfile=": "Delve Debugger\nVersion: 1.27.2\nBuild: $Id$\n",
		},
	}
}

func (f *fakeMachine) lookPath(file string) (string, error) {
	if !slices.Contains(f.on, file) {
		return "", errors.New("not found")
	}
	return "/bin/" + file, nil
}

func (f *fakeMachine) run(_ context.Context, _, name string, args ...string) (string, error) {
	line := name + " " + strings.Join(args, " ")
	for prefix, out := range f.says {
		if strings.HasPrefix(line, prefix) {
			if why, fails := strings.CutPrefix(out, "!"); fails {
				return "", errors.New(why)
			}
			return out, nil
		}
	}
	return "", errors.New("no such command: " + line)
}

func TestAMachineWithEverythingIsReady(t *testing.T) {
	const want = `ok  kubectl 1.37.2
ok  port 127.0.0.1:0 is free
ok  browser /bin/chromium
ok  go 1.26.8
ok  all modules are in the cache
ok  debugger dlv 1.27.2, the pinned one
ready
`
	var out strings.Builder
	f := healthy()
	if status := ready(t.Context(), computer{f.lookPath, f.run}, "127.0.0.1:0", &out); out.String() != want ||
		status != exitOK {
		t.Errorf("got status %d and\n%swant\n%s", status, &out, want)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	everything := "go kubectl chromium"
	for name, each := range map[string]struct {
		on, command, says, listen, want string
	}{
		"an old go": {everything, "go env GOVERSION", "go1.25.9\n", "",
			"!!  go 1.25.9 is too old: install 1.26 or newer\n"},
		"go fails": {everything, "go env GOVERSION", "!exit status 2: what", "", "!!  go env GOVERSION: exit " +
			"status 2: what\n"},
		"no kubectl": {"go chromium", "", "", "", "!!  no kubectl on the PATH: install 1.26 or newer\n"},
		"an old kubectl": {everything, "kubectl version",
			`Client Version: version.Info{Major:"1", GitVersion:"v1.25.16-gke.1"}`, "", "!!  kubectl 1.25.16-gke.1 " +
				"is too old: install 1.26 or newer\n"},
		"no version": {everything, "kubectl version", "Client Version", "",
			"!!  kubectl version --client says no version\n"},
		"a taken port": {everything, "", "", taken.Addr().String(), ": use -listen 127.0.0.1:0\n"},
		"no such host": {everything, "", "", "no.such.host.invalid:1", "!!  listen tcp: lookup no.such.host.invalid"},
		"no browser":   {"go kubectl", "", "", "", "!!  no browser on the PATH: install firefox or chromium\n"},
		"no modules": {everything, "go list -deps", "!GOPROXY=off", "", "!!  modules are missing: run go mod " +
			"download while there is a network (GOPROXY=off)\n"},
		"no debugger": {everything, "go tool", "!exit status 1", "", "!!  no debugger: run go tool " +
			"-modfile=internal/check/tools/go.mod dlv version while there is a network\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			f.on = strings.Fields(each.on)
			for prefix := range f.says {
				if each.command != "" && strings.HasPrefix(prefix, each.command) {
					f.says[prefix] = each.says
				}
			}
			var out strings.Builder
			status := ready(t.Context(), computer{f.lookPath, f.run}, cmp.Or(each.listen, "127.0.0.1:0"), &out)
			if got := out.String(); !strings.Contains(got, each.want) || !strings.HasSuffix(got,
				"\nnot ready: repair what the lines with !! say (1)\n") || status != exitError {
				t.Errorf("got status %d and\n%swant %q", status, got, each.want)
			}
		})
	}
}

func TestTheDebuggerIsTheOneThatKnowsThisGo(t *testing.T) {
	for dlv, want := range map[string]string{"Version: 1.26.0\n": "dlv 1.26.0",
		"Version: 1.20.2\n": "dlv 1.27.2, the pinned one"} {
		f := healthy()
		f.on, f.says["dlv version"] = append(f.on, "dlv"), dlv
		got, err := (computer{f.lookPath, f.run}).debugger(t.Context(), "/src")
		assert.True(t, got == "debugger "+want && err == nil, "%q: got %q, %v", dlv, got, err)
	}
}

func TestAReleaseNeedsNoGo(t *testing.T) {
	f := healthy()
	f.on, f.says = []string{"kubectl", "rundll32"}, map[string]string{"kubectl version": "v1.37.2"}
	assert.Equal(t, ready(t.Context(), computer{f.lookPath, f.run}, "127.0.0.1:0", io.Discard), exitOK, "got status")
}

// TestReadyAsksThisMachine looks at the real look-ups where their answer is known.
func TestReadyAsksThisMachine(t *testing.T) {
	m := computer{exec.LookPath, runCommand}
	if root, err := filepath.Abs("../.."); err != nil || m.checkout(t.Context()) != root {
		t.Errorf("checkout: got %q, want %q, %v", m.checkout(t.Context()), root, err)
	}
	got, err := m.version(t.Context(), "..", oldestGo, "go", "env", "GOVERSION")
	assert.NoError(t, err, "go: got %v", got)
	if _, err := runCommand(t.Context(), "", "go", "no-such-command"); err == nil || !strings.Contains(err.Error(),
		"no-such-command") {
		t.Errorf("a command that fails: got %v", err)
	}
}

func TestTheOldestGoIsThatOfTheModule(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	assert.True(t, err == nil && strings.Contains(string(text), "\n"+"go "+oldestGo+".0\n"),
		"go.mod does not say %s, %v", oldestGo, err)
}

func TestTheVersionIsSaid(t *testing.T) {
	var out strings.Builder
	if status := run(t.Context(), []string{"-version"}, &out, io.Discard); status != exitOK ||
		!strings.HasPrefix(out.String(), "listwatch devel, as Kubernetes v1.37.2, go1.") {
		t.Errorf("status %d, %q", status, &out)
	}
}

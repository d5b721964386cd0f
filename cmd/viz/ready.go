package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	apiversion "k8s.io/apimachinery/pkg/util/version"

	"listwatch/internal/etcdnode"
)

const (
	oldestGo      = "go1.26"
	oldestKubectl = "1.26"
	// wantedSpace holds the embedded etcd's data, a recording or two, and the test binaries of a few chapters.
	wantedSpace = 1 << 30
	// commandPatience is longer than the build of the debugger takes on a slow laptop.
	commandPatience = 5 * time.Minute
)

// debuggerCommand fetches and builds the debugger that is pinned.
const debuggerCommand = "go tool -modfile=internal/tools/go.mod dlv version"

// machine is what -ready asks about the computer that it runs on.
type machine struct {
	goos     string
	tempDir  string
	lookPath func(file string) (string, error)
	// run returns what a command prints on stdout. If dir is "", it runs in the current folder.
	run       func(ctx context.Context, dir, name string, args ...string) (string, error)
	listen    func(address string) error
	write     func(dir string) error // makes a file and removes it
	freeSpace func(dir string) (free int64, ok bool)
}

// finding is one line of -ready.
type finding struct {
	mark string
	text string
}

func fine(format string, args ...any) finding    { return finding{"ok", fmt.Sprintf(format, args...)} }
func missing(format string, args ...any) finding { return finding{"!!", fmt.Sprintf(format, args...)} }

// without is about something that only a part of the program needs.
func without(format string, args ...any) finding { return finding{"--", fmt.Sprintf(format, args...)} }

// ready writes one line for each thing that a workshop needs, and returns the exit status.
func ready(ctx context.Context, m machine, listen string, stdout io.Writer) int {
	checkout := m.checkout(ctx)
	findings := []finding{m.goVersion(ctx, checkout), m.kubectl(ctx), m.port(listen), m.browser(), m.temp(), m.space()}
	if checkout != "" {
		findings = append(findings, m.modules(ctx, checkout), m.debugger(ctx, checkout))
	}
	bad := 0
	for _, each := range findings {
		fmt.Fprintf(stdout, "%s  %s\n", each.mark, each.text)
		if each.mark == "!!" {
			bad++
		}
	}
	if bad > 0 {
		fmt.Fprintf(stdout, "not ready: repair what the lines with !! say (%d)\n", bad)
		return exitError
	}
	fmt.Fprintln(stdout, "ready")
	return exitOK
}

// checkout returns the folder of the sources around the current folder, or "": a binary needs none.
func (m machine) checkout(ctx context.Context) string {
	out, err := m.run(ctx, "", "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	dir, ok := strings.CutPrefix(strings.TrimSpace(out), "listwatch ")
	if err != nil || !ok {
		return ""
	}
	return dir
}

func (m machine) goVersion(ctx context.Context, checkout string) finding {
	bad := missing
	if checkout == "" {
		bad = without
	}
	if _, err := m.lookPath("go"); err != nil {
		return bad("no go on the PATH: labs, tests and the debugger need %s or newer", oldestGo)
	}
	out, err := m.run(ctx, checkout, "go", "env", "GOVERSION")
	found := strings.TrimSpace(out)
	switch {
	case err != nil:
		return bad("go env GOVERSION: %v", err)
	case !strings.HasPrefix(found, "devel") && version.Compare(found, oldestGo) < 0:
		return bad("%s is too old: install %s or newer", found, oldestGo)
	}
	return fine("%s", found)
}

func (m machine) kubectl(ctx context.Context) finding {
	if _, err := m.lookPath("kubectl"); err != nil {
		return missing("no kubectl on the PATH: install %s or newer", oldestKubectl)
	}
	out, err := m.run(ctx, "", "kubectl", "version", "--client", "-o", "json")
	if err != nil {
		return missing("kubectl version: %v", err)
	}
	var said struct{ ClientVersion struct{ GitVersion string } }
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		return missing("kubectl version: %v", err)
	}
	found := said.ClientVersion.GitVersion
	parsed, err := apiversion.ParseGeneric(found)
	if err != nil {
		return missing("kubectl version %q: %v", found, err)
	}
	if !parsed.AtLeast(apiversion.MustParseGeneric(oldestKubectl)) {
		return missing("kubectl %s is too old: install %s or newer", found, oldestKubectl)
	}
	return fine("kubectl %s", found)
}

func (m machine) port(listen string) finding {
	err := m.listen(listen)
	switch {
	case err == nil:
		return fine("port %s is free", listen)
	case inUse(err):
		return missing("port %s is taken: use -listen 127.0.0.1:0", listen)
	}
	return missing("cannot listen at %s: %v", listen, err)
}

// inUse reports whether another program has the port. Windows has a number of its own for it.
func inUse(err error) bool {
	const windows = syscall.Errno(10048) // WSAEADDRINUSE
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windows)
}

// browsers returns the commands of which one shows the page.
func (m machine) browsers() []string {
	switch m.goos {
	case "windows":
		return []string{"rundll32"} // as -open does; the system always has a browser
	case "darwin":
		return []string{"open"}
	}
	return []string{"firefox", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "x-www-browser", "xdg-open"}
}

func (m machine) browser() finding {
	for _, name := range m.browsers() {
		if path, err := m.lookPath(name); err == nil {
			return fine("browser %s", path)
		}
	}
	return missing("no browser on the PATH: install firefox or chromium")
}

func (m machine) temp() finding {
	if err := m.write(m.tempDir); err != nil {
		return missing("cannot write in the temporary folder: %v; set %s to another", err, m.tempVariable())
	}
	return fine("temporary folder %s", m.tempDir)
}

func (m machine) tempVariable() string {
	if m.goos == "windows" {
		return "TMP"
	}
	return "TMPDIR"
}

func (m machine) space() finding {
	free, ok := m.freeSpace(m.tempDir)
	switch {
	case !ok:
		return without("free space: not known on %s; %d MB are enough", m.goos, wantedSpace>>20)
	case free < wantedSpace:
		return missing("%d MB are free in %s: make it %d", free>>20, m.tempDir, wantedSpace>>20)
	}
	return fine("%d MB are free in %s", free>>20, m.tempDir)
}

func (m machine) modules(ctx context.Context, checkout string) finding {
	if _, err := m.run(ctx, checkout, "go", "list", "-deps", "-test", "./..."); err != nil {
		return missing("modules are missing: run go mod download while there is a network (%v)", err)
	}
	return fine("all modules are in the cache")
}

// debugger looks for what `make debug` uses: a dlv on the PATH, if it knows this Go, or else the pinned one.
func (m machine) debugger(ctx context.Context, checkout string) finding {
	if path, err := m.lookPath("dlv"); err == nil {
		ours, _ := m.run(ctx, checkout, "go", "env", "GOVERSION") // "": said elsewhere
		found := m.delve(ctx, checkout, "dlv")
		if version.Compare(version.Lang("go"+found), version.Lang(strings.TrimSpace(ours))) >= 0 {
			return fine("debugger dlv %s, %s", found, path)
		}
	}
	pinned := m.delve(ctx, checkout, "go", "tool", "-modfile="+filepath.Join(checkout, "internal", "tools", "go.mod"), "dlv")
	if pinned == "" {
		return missing("no debugger: run %s while there is a network", debuggerCommand)
	}
	return fine("debugger dlv %s, the pinned one", pinned)
}

// delve returns the version that a delve says it has, "" if it says none.
func (m machine) delve(ctx context.Context, checkout string, command ...string) string {
	out, _ := m.run(ctx, checkout, command[0], append(command[1:], "version")...)
	_, found, _ := strings.Cut(out, "Version: ")
	found, _, _ = strings.Cut(found, "\n")
	return found
}

// thisMachine asks the real computer.
func thisMachine() machine {
	return machine{
		goos: runtime.GOOS, tempDir: os.TempDir(), lookPath: exec.LookPath, run: runCommand,
		listen: tryListen, write: tryWrite, freeSpace: etcdnode.FreeSpace,
	}
}

// runCommand runs a command that must not use the network.
func runCommand(ctx context.Context, dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOPROXY=off")
	command.WaitDelay = time.Second
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n"); err != nil && said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return string(out), err
}

func tryListen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return listener.Close()
}

func tryWrite(dir string) error {
	file, err := os.CreateTemp(dir, "listwatch-ready-")
	if err != nil {
		return err
	}
	_, err = file.WriteString("x")
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

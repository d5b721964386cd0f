package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	apiversion "k8s.io/apimachinery/pkg/util/version"

	"listwatch/internal/server/etcdnode"
)

const (
	oldestGo        = "1.26"
	oldestKubectl   = "1.26"
	wantedSpace     = 1 << 30         // for the embedded etcd, a recording or two, and the test binaries of a few chapters
	commandPatience = 5 * time.Minute // longer than a slow laptop needs to build the debugger
)

// machine is what -ready asks about the computer that it runs on.
type machine struct {
	goos      string
	tempDir   string
	lookPath  func(file string) (string, error)
	run       func(ctx context.Context, dir, name string, args ...string) (stdout string, err error) // dir "": the current one
	listen    func(address string) error
	write     func(dir string) error // makes a file and removes it
	freeSpace func(dir string) (free int64, ok bool)
}

// notNeeded is why something is missing that only labs, tests and the debugger use.
type notNeeded struct{ error }

// ready writes one line for each thing that a workshop needs, and returns the exit status.
func ready(ctx context.Context, m machine, listen string, stdout io.Writer) int {
	checkout := m.checkout(ctx)
	bad := 0
	say := func(text string, err error) {
		mark := "ok"
		if errors.As(err, &notNeeded{}) {
			mark, text = "--", err.Error()
		} else if err != nil {
			mark, text = "!!", err.Error()
			bad++
		}
		fmt.Fprintf(stdout, "%s  %s\n", mark, text)
	}
	goes, err := m.version(ctx, checkout, oldestGo, "go", "env", "GOVERSION")
	if err != nil && checkout == "" {
		err = notNeeded{fmt.Errorf("%w: labs, tests and the debugger need it", err)} // a release runs without it
	}
	say(goes, err)
	say(m.version(ctx, "", oldestKubectl, "kubectl", "version", "--client"))
	say(m.port(listen))
	say(m.browser())
	say(m.temp())
	say(m.space())
	if checkout != "" {
		_, err := m.run(ctx, checkout, "go", "list", "-deps", "-test", "./...")
		if err != nil {
			err = fmt.Errorf("modules are missing: run go mod download while there is a network (%w)", err)
		}
		say("all modules are in the cache", err)
		say(m.debugger(ctx, checkout))
	}
	if bad > 0 {
		fmt.Fprintf(stdout, "not ready: repair what the lines with !! say (%d)\n", bad)
		return exitError
	}
	fmt.Fprintln(stdout, "ready")
	return exitOK
}

// checkout returns the folder of the sources around the current folder, or "": a release needs none.
func (m machine) checkout(ctx context.Context) string {
	out, _ := m.run(ctx, "", "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}") // without go there is none
	dir, ours := strings.CutPrefix(strings.TrimSpace(out), "listwatch ")
	if !ours {
		return ""
	}
	return dir
}

// versionNumber is the first version in what a command prints.
var versionNumber = regexp.MustCompile(`\d+\.\d+[-+.\w]*`)

// version returns a program's name and version, as its command says it, if that is not older than the oldest.
func (m machine) version(ctx context.Context, dir, oldest, name string, args ...string) (string, error) {
	if _, err := m.lookPath(name); err != nil {
		return "", fmt.Errorf("no %s on the PATH: install %s or newer", name, oldest)
	}
	out, err := m.run(ctx, dir, name, args...)
	found := versionNumber.FindString(out)
	if err == nil && found == "" {
		err = errors.New("it says no version")
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	parsed, err := apiversion.ParseGeneric(found)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, found, err)
	}
	if !parsed.AtLeast(apiversion.MustParseGeneric(oldest)) {
		return "", fmt.Errorf("%s %s is too old: install %s or newer", name, found, oldest)
	}
	return name + " " + found, nil
}

// debugger looks for what `make debug` uses: a dlv on the PATH, if it knows this Go, or else the pinned one.
func (m machine) debugger(ctx context.Context, checkout string) (string, error) {
	ours, _ := m.run(ctx, checkout, "go", "env", "GOVERSION") // "": said elsewhere
	if found, err := m.version(ctx, checkout, minor(ours), "dlv", "version"); err == nil {
		return "debugger " + found, nil
	}
	tool := []string{"tool", "-modfile=" + filepath.Join(checkout, "internal", "check", "tools", "go.mod"), "dlv", "version"}
	out, err := m.run(ctx, checkout, "go", tool...)
	if err != nil {
		return "", errors.New("no debugger: run go tool -modfile=internal/check/tools/go.mod dlv version while there is a network")
	}
	return fmt.Sprintf("debugger dlv %s, the pinned one", versionNumber.FindString(out)), nil
}

// minor returns 1.26 for go1.26.8.
func minor(version string) string {
	return cmp.Or(regexp.MustCompile(`\d+\.\d+`).FindString(version), oldestGo)
}

func (m machine) port(listen string) (string, error) {
	const windows = syscall.Errno(10048) // WSAEADDRINUSE
	err := m.listen(listen)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windows) {
		return "", fmt.Errorf("port %s is taken: use -listen 127.0.0.1:0", listen)
	}
	if err != nil {
		return "", fmt.Errorf("cannot listen at %s: %w", listen, err)
	}
	return fmt.Sprintf("port %s is free", listen), nil
}

func (m machine) browser() (string, error) {
	names := "firefox chromium chromium-browser google-chrome google-chrome-stable microsoft-edge x-www-browser xdg-open"
	switch m.goos { // as -open does; these systems always have a browser
	case "windows":
		names = "rundll32"
	case "darwin":
		names = "open"
	}
	for name := range strings.FieldsSeq(names) {
		if path, err := m.lookPath(name); err == nil {
			return "browser " + path, nil
		}
	}
	return "", errors.New("no browser on the PATH: install firefox or chromium")
}

func (m machine) temp() (string, error) {
	variable := "TMPDIR"
	if m.goos == "windows" {
		variable = "TMP"
	}
	if err := m.write(m.tempDir); err != nil {
		return "", fmt.Errorf("cannot write in the temporary folder: %w; set %s to another", err, variable)
	}
	return "temporary folder " + m.tempDir, nil
}

func (m machine) space() (string, error) {
	free, ok := m.freeSpace(m.tempDir)
	if !ok {
		return "", notNeeded{fmt.Errorf("free space: not known on %s; %d MB are enough", m.goos, wantedSpace>>20)}
	}
	if free < wantedSpace {
		return "", fmt.Errorf("%d MB are free in %s: make it %d", free>>20, m.tempDir, wantedSpace>>20)
	}
	return fmt.Sprintf("%d MB are free in %s", free>>20, m.tempDir), nil
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

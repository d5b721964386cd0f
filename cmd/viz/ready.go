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
	"strings"
	"time"

	apiversion "k8s.io/apimachinery/pkg/util/version"
)

const (
	oldestGo        = "1.26"
	oldestKubectl   = "1.26"
	commandPatience = 5 * time.Minute // longer than a slow laptop needs to build the debugger
	browsers        = "firefox chromium chromium-browser google-chrome google-chrome-stable microsoft-edge " +
		"x-www-browser xdg-open open rundll32"
)

// computer is what -ready asks about the computer that it runs on.
type computer struct {
	lookPath func(file string) (string, error)
	// dir "": the current one
	run func(ctx context.Context, dir, name string, args ...string) (stdout string, err error)
}

// ready writes one line for each thing that a workshop needs, and returns the exit status. Outside a checkout nothing
// but the program itself is to run: a release needs no go.
func ready(ctx context.Context, m computer, listen string, stdout io.Writer) int {
	bad := 0
	say := func(text string, err error) {
		if err != nil {
			bad++
			fmt.Fprintf(stdout, "!!  %v\n", err)
			return
		}
		fmt.Fprintf(stdout, "ok  %s\n", text)
	}
	say(m.version(ctx, "", oldestKubectl, "kubectl", "version", "--client"))
	say(portIsFree(listen))
	say(m.browser())
	if checkout := m.checkout(ctx); checkout != "" {
		say(m.version(ctx, checkout, oldestGo, "go", "env", "GOVERSION"))
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

// checkout returns the folder of the sources around the current folder, or "": without go, or elsewhere, there are
// none.
func (m computer) checkout(ctx context.Context) string {
	out, _ := m.run(ctx, "", "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	dir, ours := strings.CutPrefix(strings.TrimSpace(out), "listwatch ")
	if !ours {
		return ""
	}
	return dir
}

// versionNumber is the first version in what a command prints.
var versionNumber = regexp.MustCompile(`\d+\.\d+[-+.\w]*`)

// version returns a program's name and version, as its command says it, if that is not older than the oldest.
func (m computer) version(ctx context.Context, dir, oldest, name string, args ...string) (string, error) {
	if _, err := m.lookPath(name); err != nil {
		return "", fmt.Errorf("no %s on the PATH: install %s or newer", name, oldest)
	}
	out, err := m.run(ctx, dir, name, args...)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	found := versionNumber.FindString(out)
	parsed, err := apiversion.ParseGeneric(found)
	if err != nil {
		return "", fmt.Errorf("%s %s says no version", name, strings.Join(args, " "))
	}
	if !parsed.AtLeast(apiversion.MustParseGeneric(oldest)) {
		return "", fmt.Errorf("%s %s is too old: install %s or newer", name, found, oldest)
	}
	return name + " " + found, nil
}

// debugger looks for what `make debug` uses: a dlv on the PATH, if it knows this Go, or else the pinned one.
func (m computer) debugger(ctx context.Context, checkout string) (string, error) {
	ours, _ := m.run(ctx, checkout, "go", "env", "GOVERSION")                  // "": said elsewhere
	minor := cmp.Or(regexp.MustCompile(`\d+\.\d+`).FindString(ours), oldestGo) // 1.26 of go1.26.8
	if found, err := m.version(ctx, checkout, minor, "dlv", "version"); err == nil {
		return "debugger " + found, nil
	}
	tools := "-modfile=" + filepath.Join(checkout, "internal", "check", "tools", "go.mod")
	out, err := m.run(ctx, checkout, "go", "tool", tools, "dlv", "version")
	if err != nil {
		return "", errors.New("no debugger: run go tool -modfile=internal/check/tools/go.mod dlv version while there " +
			"is a network")
	}
	return fmt.Sprintf("debugger dlv %s, the pinned one", versionNumber.FindString(out)), nil
}

func portIsFree(address string) (string, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", fmt.Errorf("%w: use -listen 127.0.0.1:0", err)
	}
	return fmt.Sprintf("port %s is free", address), listener.Close()
}

func (m computer) browser() (string, error) {
	for name := range strings.FieldsSeq(browsers) {
		if path, err := m.lookPath(name); err == nil {
			return "browser " + path, nil
		}
	}
	return "", errors.New("no browser on the PATH: install firefox or chromium")
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

// Command bag makes what is handed out: the bag, one archive for a room without a network.
//
//	go run ./cmd/bag pack FILE   writes the bag: sources, modules, the site; viz, kubectl and delve for each system
//	go run ./cmd/bag licences FILE   writes the licences of what is linked into the machine of a tab (cmd/tab)
//
// -targets linux/amd64,windows/arm64 makes less. `make bag-check` works from a bag as an attendee would.
//
// Exit status: 0; 1 if something went wrong; 2 for a wrong command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"listwatch/internal/play/lab"
	"listwatch/internal/text/source"
)

// allTargets are the systems that attendees bring.
const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

var errUsage = errors.New("usage: bag [-targets os/arch,…] pack FILE | licences FILE")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "bag:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("bag", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	targets := flags.String("targets", allTargets, "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 2 {
		return errUsage
	}
	m := &maker{out: out}
	for each := range strings.SplitSeq(*targets, ",") {
		goos, goarch, found := strings.Cut(each, "/")
		if !found {
			return errUsage
		}
		m.targets = append(m.targets, target{goos, goarch})
	}
	make := map[string]func(context.Context, string) error{
		"pack": m.pack, "licences": m.machineLicences,
	}[flags.Arg(0)]
	if make == nil {
		return errUsage
	}
	if m.root, err = m.command(ctx, nil, "go", "list", "-m", "-f", "{{.Dir}}"); err != nil {
		return err
	}
	if m.version, err = m.command(ctx, nil, "git", "describe", "--tags", "--always", "--dirty"); err != nil {
		m.version = "devel" // no checkout of git
	}
	to, err := filepath.Abs(flags.Arg(1))
	if err != nil {
		return err
	}
	if m.temp, err = os.MkdirTemp("", "listwatch-bag-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.temp)) }()
	// All is made from what is committed, whatever is edited meanwhile.
	committed := filepath.Join(m.temp, "bag", "listwatch")
	if err := lab.Copy(m.root, committed); err != nil {
		return err
	}
	m.root = committed
	return make(ctx, to)
}

// maker makes bags from a checkout.
type maker struct {
	root    string // of the sources
	version string
	targets []target
	temp    string    // a folder of its own
	out     io.Writer // what is being done
}

// target is a system that programs are built for.
type target struct{ goos, goarch string }

func (t target) String() string { return t.goos + "-" + t.goarch }

// program is a main package, and the flags with which the go command finds and builds it.
type program struct {
	name, pkg string
	flags     []string
	linked    string // what else the linker sets
}

var (
	viz = program{name: "viz", pkg: "./cmd/viz"}
	// Without a version kubectl says that it is v0.0.0, and -ready would call it too old.
	kubectl = program{name: "kubectl", pkg: "./cmd/kubectl", flags: []string{"-C", "internal/check/compat"},
		linked: " -X k8s.io/component-base/version.gitVersion=" + source.KubernetesVersion}
	// Delve takes Windows on ARM for an experiment, and has it under this tag only.
	delve = program{name: "dlv", pkg: "github.com/go-delve/delve/cmd/dlv",
		flags: []string{"-modfile=internal/check/tools/go.mod", "-tags=exp.winarm64"}}
	machine = program{name: "machine", pkg: "./cmd/tab", flags: []string{"-tags=grpcnotrace"}} // cmd/tab/build.sh
)

// goFor runs the go command for a program and a target: verb, its flags, the package.
func (m *maker) goFor(ctx context.Context, t target, p program, verb string, args ...string) (string, error) {
	env := []string{"GOOS=" + t.goos, "GOARCH=" + t.goarch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}
	return m.command(ctx, env, "go", slices.Concat([]string{verb}, p.flags, args, []string{p.pkg})...)
}

// command runs a command in the checkout and returns what it prints.
func (m *maker) command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = m.root
	command.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// Command bag, at the root of the sources, makes what is handed out: the bag, one archive for a room without a network.
//
//	go run ./cmd/bag pack FILE   writes the bag: sources, modules, the site; viz, kubectl and delve for each system
//	go run ./cmd/bag licences FILE   writes the licences of what is linked into the machine of a tab (cmd/tab)
//
// -targets linux/amd64,windows/arm64 makes less. `make bag-check` works from a bag as an attendee would.
//
// Exit status: 0; 1 if something went wrong; 2 for a wrong command line.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

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

func run(ctx context.Context, args []string, says io.Writer) error {
	flags := flag.NewFlagSet("bag", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	targets := flags.String("targets", allTargets, "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 2 {
		return errUsage
	}
	m := &maker{root: ".", targets: strings.Split(*targets, ","), out: says}
	make := map[string]func(context.Context, io.Writer) error{
		"pack":     m.pack,
		"licences": func(ctx context.Context, to io.Writer) error { return m.licences(ctx, to, "js/wasm", machine) },
	}[flags.Arg(0)]
	without := func(target string) bool { return !strings.Contains(target, "/") }
	if make == nil || slices.ContainsFunc(m.targets, without) {
		return errUsage
	}
	file, err := os.Create(flags.Arg(1))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	if err = errors.Join(make(ctx, out), out.Flush(), file.Close()); err != nil {
		err = errors.Join(err, os.Remove(file.Name())) // half of it is nothing to hand out
	}
	return err
}

// maker makes bags from the sources in the folder root, and prints to out what it does.
type maker struct {
	root    string
	version string   // of the programs
	targets []string // the systems that programs are built for, as linux/amd64
	out     io.Writer
}

// program is a main package, and the flags with which the go command finds and builds it.
type program struct {
	name, pkg string
	flags     []string
	linked    string // what else the linker sets
}

var (
	programs = []program{
		{name: "viz", pkg: "./cmd/viz"},
		// Without a version kubectl says that it is v0.0.0, and -ready would call it too old.
		{name: "kubectl", pkg: "./cmd/kubectl", flags: []string{"-C", "internal/check/compat"},
			linked: " -X k8s.io/component-base/version.gitVersion=" + source.KubernetesVersion},
		// Delve takes Windows on ARM for an experiment, and has it under this tag only.
		{name: "dlv", pkg: "github.com/go-delve/delve/cmd/dlv",
			flags: []string{"-modfile=internal/check/tools/go.mod", "-tags=exp.winarm64"}},
	}
	machine = program{name: "machine", pkg: "./cmd/tab", flags: []string{"-tags=grpcnotrace"}} // cmd/tab/build.sh
)

// goFor runs the go command for a program and a target: verb, its flags, the package.
func (m *maker) goFor(ctx context.Context, target string, p program, verb string, args ...string) (string, error) {
	goos, goarch, _ := strings.Cut(target, "/")
	env := []string{"GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}
	return m.command(ctx, env, "go", slices.Concat([]string{verb}, p.flags, args, []string{p.pkg})...)
}

// command runs a command in the checkout and returns what it prints.
func (m *maker) command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = m.root, append(os.Environ(), env...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

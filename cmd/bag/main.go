// Command bag makes what is handed out: releases for every system, and the bag, one archive for a stick or a LAN.
//
//	go run ./cmd/bag dist DIR     writes a release for each system into DIR, and SHA256SUMS
//	go run ./cmd/bag pack FILE    writes the bag: releases, sources, Go modules, kubectl, delve, START.html
//	go run ./cmd/bag check FILE   works from the bag with empty caches and no network, as an attendee would
//
// -targets linux/amd64,windows/arm64 makes less.
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
	"strings"

	"listwatch/internal/source"
)

// allTargets are the systems that attendees bring.
const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

const usage = "usage: bag [-targets os/arch,…] [-version V] dist DIR | pack FILE | check FILE"

var errUsage = errors.New(usage)

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
	version := flags.String("version", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 2 {
		return errUsage
	}
	root, err := goOutput(ctx, ".", nil, "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	made := &maker{root: root, version: *version, out: out}
	if made.version == "" {
		made.version = describe(ctx, root)
	}
	for each := range strings.SplitSeq(*targets, ",") {
		goos, goarch, found := strings.Cut(each, "/")
		if !found {
			return errUsage
		}
		made.targets = append(made.targets, target{goos, goarch})
	}
	switch flags.Arg(0) {
	case "dist":
		site, err := os.MkdirTemp("", "listwatch-bag-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(site)) }()
		if err := made.export(ctx, site); err != nil {
			return err
		}
		return made.dist(ctx, flags.Arg(1))
	case "pack":
		return made.pack(ctx, flags.Arg(1))
	case "check":
		return check(ctx, flags.Arg(1), out)
	}
	return errUsage
}

// maker makes releases and bags from a checkout.
type maker struct {
	root    string
	version string
	targets []target
	site    string    // folder of the site; "": a release has none
	out     io.Writer // what is being done
}

// describe names the sources: by git, if it knows them.
func describe(ctx context.Context, root string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "devel"
	}
	return strings.TrimSpace(string(out))
}

// goOutput runs the go command in a folder, and returns what it prints.
func goOutput(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// target is a system that a binary is built for.
type target struct{ goos, goarch string }

func (t target) String() string { return t.goos + "-" + t.goarch }

func (t target) exe(name string) string {
	if t.goos == "windows" {
		return name + ".exe"
	}
	return name
}

func (t target) env() []string {
	return []string{"GOOS=" + t.goos, "GOARCH=" + t.goarch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}
}

// program is a main package: where its module is, how it is named there, its build tags, and what else the linker sets.
type program struct{ name, dir, pkg, modfile, tags, linked string }

var (
	viz = program{name: "viz", pkg: "./cmd/viz"}
	// Left alone kubectl says that it is v0.0.0, and -ready would call it too old.
	kubectl = program{name: "kubectl", dir: "internal/compat", pkg: "./cmd/kubectl", linked: " -X k8s.io/component-base/version.gitVersion=" + source.KubernetesVersion}
	// To delve Windows on ARM is an experiment, which it has under this tag only.
	delve = program{name: "dlv", pkg: "github.com/go-delve/delve/cmd/dlv", modfile: "internal/tools/go.mod", tags: "exp.winarm64"}
	// tools are what the workshop uses beside viz.
	tools = []program{kubectl, delve}
)

// goFor runs the go command for a program and a target: verb, its flags, the package.
func (m *maker) goFor(ctx context.Context, t target, p program, verb string, args ...string) (string, error) {
	full := []string{verb}
	if p.modfile != "" {
		full = append(full, "-modfile="+filepath.FromSlash(p.modfile))
	}
	if p.tags != "" {
		full = append(full, "-tags="+p.tags)
	}
	return goOutput(ctx, filepath.Join(m.root, filepath.FromSlash(p.dir)), t.env(), append(append(full, args...), p.pkg)...)
}

// build builds a program. Two builds of the same sources are equal, wherever they lie: no paths, no time, no build id of the
// checkout's state.
func (m *maker) build(ctx context.Context, t target, p program, file string) error {
	fmt.Fprintf(m.out, "build %s for %s\n", p.name, t)
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	_, err = m.goFor(ctx, t, p, "build", "-trimpath", "-ldflags=-s -w -X main.releaseName="+m.version+p.linked, "-o", file)
	return err
}

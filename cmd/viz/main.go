// Command viz runs the whole of listwatch in one process: embedded etcd, the server half, the client half, the book
// and the page on which every event is seen, all on one port.
//
// Exit status: 0 after SIGINT or SIGTERM, 1 if something could not be started or broke, 2 for a wrong command line.
// The first signal ends the program within three seconds. A second one ends it at once, and then its temporary
// folder stays.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"k8s.io/utils/clock"

	"listwatch/internal/text/source"
)

const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// gcPercent is how much garbage there may be beside what is in use, in percent of it. Go's default is 100. The
// program stands beside a browser and an editor, so it takes a third less memory, and a tenth more processor time
// while it is flooded with writes: see docs/COSTS.md. GOGC in the environment wins.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(interruptible(), os.Args[1:], os.Stdout, os.Stderr))
}

// interruptible returns a context that the first signal ends. A second signal does what the system does with a
// program that knows no signals.
func interruptible() context.Context {
	// Windows knows only os.Interrupt; asking for SIGTERM there is harmless.
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithCancel(context.Background())
	// Stop first: a client that sees an effect of the first signal can rely on the second one.
	context.AfterFunc(signalled, func() { stop(); end() })
	return ctx
}

// run is main with what it touches handed in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runUntil(ctx, &ending{clock: clock.RealClock{}}, args, stdout, stderr)
}

// runUntil returns the exit status when nothing of the program runs any more, or end no longer waits for it.
// Nothing temporary is left on disk.
func runUntil(ctx context.Context, end *ending, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "viz: %v (viz -h lists the flags)\n", err)
		return exitUsage
	case o.version:
		fmt.Fprintf(stdout, "listwatch %s, as Kubernetes %s, %s %s/%s\n", version(),
			source.KubernetesVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return exitOK
	}
	o.end = end
	err = end.within(ctx, stderr, func(ctx context.Context) error {
		if o.export != "" {
			return exportTo(o.export, stdout)
		}
		if err := checkOpenFiles(); err != nil {
			return err
		}
		return serve(ctx, o, stdout, stderr)
	})
	// To be interrupted while starting is no error either.
	if err != nil && !(ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		fmt.Fprintf(stderr, "viz: %v\n", err)
		return exitError
	}
	return exitOK
}

// checkOpenFiles refuses to start where so few files can be open that etcd or clients would be refused later.
func checkOpenFiles() error {
	const needed = 48 // some 25 without clients
	for range needed {
		file, err := os.Open(os.DevNull)
		var why *os.PathError
		if errors.As(err, &why) {
			return fmt.Errorf("cannot have %d files open at once: %w; "+
				"raise the limit, such as by ulimit -n 256", needed,
				why.Err)
		}
		defer file.Close()
	}
	return nil
}

// version is what the go command gives to what it builds: it names the commit.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok { // a build without modules
		return "devel"
	}
	return strings.Trim(build.Main.Version, "()") // (devel)
}

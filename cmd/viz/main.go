// Command viz runs the whole of listwatch in one process: embedded etcd, the server half, the client half, the book and
// the page on which every event is seen, all on one port.
//
// Exit status: 0 after SIGINT or SIGTERM, 1 if something could not be started or broke, 2 for a wrong command line.
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

	"listwatch/internal/text/source"
)

const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// gcPercent is how much garbage there may be beside what is in use, in percent of it. Go's default is 100. The program
// stands beside a browser and an editor, so it takes a third less memory, and a tenth more processor time while it is
// flooded with writes: see docs/COSTS.md. GOGC in the environment wins.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// Windows knows only os.Interrupt; asking for SIGTERM there is harmless.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is main with everything it touches handed in. It returns the exit status when nothing of the program runs any
// more and nothing temporary is left on disk.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
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
	case o.export != "":
		err = exportTo(o.export, stdout)
	default:
		if err = checkOpenFiles(); err == nil {
			err = serve(ctx, o, stdout, stderr)
		}
	}
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
			return fmt.Errorf("cannot have %d files open at once: %w; raise the limit, such as by ulimit -n 256", needed,
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

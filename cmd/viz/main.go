// Command viz runs the whole of listwatch in one process: embedded etcd, the server half, the client half, the book,
// and the page that shows every event. It owns the port, files, signals and etcd; package machine has the rest. Flags,
// exit statuses and printed lines are contracts, on which the tests in internal/check/compat rely.
//
// Exit status: 0 after a signal, -help, -version or -export; 1 if something could not be started or broke; 2 for a
// wrong command line. The first SIGINT or SIGTERM ends the program within three seconds. A second one ends it at once,
// and leaves its temporary folder.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/routine"
	"listwatch/internal/text/source"
)

const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// gcPercent is the limit of garbage, in percent of the memory in use. Go's default is 100. The program shares the
// machine with a browser and an editor. With this limit it takes a third less memory, and under a flood of writes a
// tenth more processor time. GOGC in the environment overrides the limit.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(interruptible(), os.Args[1:], os.Stdout, os.Stderr))
}

// interruptible returns a context that the first signal ends. A second signal kills the program, as if unhandled.
func interruptible() context.Context {
	// On Windows, Go reports Ctrl-C as os.Interrupt, and the end of the console or of the user's session as SIGTERM.
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithCancel(context.Background())
	// Call stop first: a client that sees an effect of the first signal can then rely on the second one.
	context.AfterFunc(signalled, func() { stop(); end() })
	return ctx
}

// run is main without its globals.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runUntil(ctx, &ending{clock: clock.RealClock{}}, args, stdout, stderr)
}

// runUntil does what args require, and prints errors. It returns the exit status when the whole program has ended, or
// when end stops waiting for it. It leaves no temporary files, unless closing etcd takes too long.
func runUntil(ctx context.Context, end *ending, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "viz: %v (viz -h lists the flags)\n", err)
		return exitUsage
	case o.version:
		fmt.Fprintf(stdout, "listwatch %s, as Kubernetes %s, %s %s/%s\n", cmp.Or(recording.Revision(), "devel"),
			source.KubernetesVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return exitOK
	}
	o.end = end
	err = end.within(ctx, stderr, func(ctx context.Context) error {
		if o.export != "" {
			return exportTo(o.export, stdout)
		}
		return serve(ctx, o, stdout, stderr)
	})
	// An interrupt during the start is not an error either.
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		fmt.Fprintf(stderr, "viz: %v\n", err)
		return exitError
	}
	return exitOK
}

// The times after the first signal at which the program stops waiting for parts that have not ended by themselves.
const (
	streamsEnd  = 1500 * time.Millisecond // clients' streams end, even if the client half still runs
	waitingEnds = 2500 * time.Millisecond // the program stops waiting for its goroutines
	closingEnds = 3000 * time.Millisecond // the program stops waiting for closing tasks
)

// ending ends the program even if some goroutine does not end, and first runs the tasks that must not be left out.
type ending struct {
	clock   clock.Clock // the wall clock, which no page can stop
	streams tasks       // each ends the streams of a front
	last    tasks       // each closes a recording, or etcd and its temporary folder
}

// within runs work and returns its error. If work still runs some time after ctx is done, within ends the clients'
// streams, prints the names of late goroutines, and runs the last tasks. It returns within closingEnds of ctx's end.
func (e *ending) within(ctx context.Context, stderr io.Writer, work func(context.Context) error) error {
	worked := e.start(ctx, "viz.work", work)
	select {
	case err := <-worked:
		return err
	case <-ctx.Done():
	}
	if ended, err := e.await(worked, streamsEnd); ended {
		return err
	}
	_ = e.streams.run()
	if ended, err := e.await(worked, waitingEnds-streamsEnd); ended {
		return err
	}
	fmt.Fprintf(stderr, "viz: ends without waiting for %s\n", strings.Join(routine.Late(), ", "))
	closed := e.start(context.Background(), "viz.close", func(context.Context) error { return e.last.run() })
	if ended, err := e.await(closed, closingEnds-waitingEnds); ended {
		return err
	}
	return errors.New("the recording or etcd could not be closed in time")
}

// start runs f in a goroutine, and returns the channel for f's error.
func (e *ending) start(ctx context.Context, name string, f func(context.Context) error) <-chan error {
	ended := make(chan error, 1) // sent once, when f returns; buffered, because the receiver may have given up
	new(routine.Group).Go(ctx, name, func(ctx context.Context) { ended <- f(ctx) })
	return ended
}

// await waits at most d for a function that start has started.
func (e *ending) await(running <-chan error, d time.Duration) (ended bool, err error) {
	timer := e.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-running:
		return true, err
	case <-timer.C():
		return false, nil
	}
}

// tasks are the tasks to run before the program ends. The zero value is empty.
type tasks struct {
	mu   sync.Mutex // guards list
	list []*task
}

// task runs its function once, for the first caller; other callers wait for the end of that call.
type task struct{ do func() error }

// add puts f on the list. do, which the caller calls when f is due, runs f and takes it off the list.
func (t *tasks) add(f func() error) (do func() error) {
	added := &task{sync.OnceValue(f)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, added)
	return func() error {
		err := added.do()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.list = slices.DeleteFunc(t.list, func(each *task) bool { return each == added })
		return err
	}
}

// run does the tasks on the list, the newest first, and returns their errors, joined.
func (t *tasks) run() error {
	t.mu.Lock()
	list := slices.Clone(t.list)
	t.mu.Unlock()
	var errs []error
	for _, each := range slices.Backward(list) {
		errs = append(errs, each.do())
	}
	return errors.Join(errs...)
}

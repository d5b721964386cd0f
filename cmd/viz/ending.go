package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/routine"
)

// How long after the first signal what happens, if not all of the program has ended by itself before. It ends within
// three seconds in any case.
const (
	streamsEnd  = 1500 * time.Millisecond // clients' streams end, although the client half still runs
	waitingEnds = 2500 * time.Millisecond // the program no longer waits for its goroutines
	closingEnds = 3000 * time.Millisecond // nor for what it closes
)

// ending sees to it that the program ends: whatever goroutine does not, what has to be done before is done.
type ending struct {
	clock   clock.Clock // the wall's, which no page stops
	streams tasks       // each ends the streams of a front
	last    tasks       // each closes what outlives the program: a recording, etcd and its folder
}

// within runs work, and returns what it returns; or nil, some time after ctx is done, when work has not returned.
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
	late := cmp.Or(strings.Join(routine.Late(), ", "), "goroutines without a name")
	select {
	case err := <-worked: // while they were looked for
		return err
	default:
	}
	fmt.Fprintf(stderr, "viz: ends without waiting for %s\n", late)
	closed := e.start(context.Background(), "viz.close", func(context.Context) error { return e.last.run() })
	if ended, err := e.await(closed, closingEnds-waitingEnds); ended {
		return err
	}
	return errors.New("the recording or etcd could not be closed in time")
}

// start runs f in a goroutine.
func (e *ending) start(ctx context.Context, name string, f func(context.Context) error) <-chan error {
	ended := make(chan error, 1) // sent once, when f has returned; buffered, for it may be waited for in vain
	new(routine.Group).Go(ctx, name, func(ctx context.Context) { ended <- f(ctx) })
	return ended
}

// await waits for what start has started, at most for d.
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

// tasks are to be done before the program ends. The zero value is empty.
type tasks struct {
	mu   sync.Mutex // guards list
	list []*task
}

// task is something that is done once, by the first who comes; the others wait for it.
type task struct{ do func() error }

// add returns what does f, and takes it off the list: those who started what f ends call it when all goes well.
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

// run does what is on the list, what was added last first.
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

// Package bubble runs tests in the bubbles of [testing/synctest].
package bubble

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"

	"listwatch/internal/observe/routine"
)

// Go runs f in a goroutine labelled name. stop cancels f's context and returns when f has returned; it may be called
// more than once. The test's cleanup calls stop, too, even after a failed require: a bubble with goroutines left would
// panic and hide the test's messages.
func Go(t testing.TB, name string, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var group routine.Group
	group.Go(ctx, name, f)
	stop = func() { cancel(); group.Wait() }
	t.Cleanup(stop)
	return stop
}

// Drain receives until the channel is closed, or until it is empty while every goroutine of the bubble waits. Drain
// returns the values as text. The text of a closed channel is "closed".
func Drain[T any](values <-chan T, describe func(T) string) (texts []string) {
	for {
		synctest.Wait()
		select {
		case value, ok := <-values:
			if !ok {
				return append(texts, "closed")
			}
			texts = append(texts, describe(value))
		default:
			return texts
		}
	}
}

var processors struct {
	sync.Mutex
	bubbles int // the number of running bubbles
	given   int // GOMAXPROCS before the first bubble
}

// Test is [synctest.Test], but a race build has one processor while f runs. The runtime runs all timers of a bubble in
// one context of the race detector. A goroutine that reads an expired timer's channel runs the timer there. Two
// goroutines that do so together, on two processors, crash the detector or make it hang (https://go.dev/issue/78156).
// The detector compares the order of events, so it also finds races of goroutines that take turns.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if Race {
		oneProcessor(+1)
		defer oneProcessor(-1)
	}
	synctest.Test(t, f)
}

// Run runs a subtest of that name in a bubble of its own.
func Run(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { Test(t, f) })
}

// oneProcessor adds change, 1 or -1, to the number of running bubbles. GOMAXPROCS is 1 while any bubble runs.
func oneProcessor(change int) {
	processors.Lock()
	defer processors.Unlock()
	before := processors.bubbles
	processors.bubbles += change
	switch {
	case before == 0:
		processors.given = runtime.GOMAXPROCS(1)
	case processors.bubbles == 0:
		runtime.GOMAXPROCS(processors.given)
	}
}

// Example runs f in a bubble, for Examples, which have no [testing.T] of their own. f uses the bubble's time: a sleep
// takes no time. Example panics if f does, and if f leaves behind a blocked goroutine.
func Example(f func()) {
	var panicked error
	defer func() {
		if panicked != nil {
			panic(panicked)
		}
	}()
	var t testing.T // has no runner that could report a panic, so Example reports it
	Test(&t, func(*testing.T) {
		defer func() {
			if value := recover(); value != nil {
				panicked = fmt.Errorf("%v\n%s", value, debug.Stack())
			}
		}()
		f()
	})
}

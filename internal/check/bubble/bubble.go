// Package bubble runs tests in the bubbles of [testing/synctest].
package bubble

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"listwatch/internal/observe/routine"
)

// Go runs f in a goroutine of that name. stop ends its context, and returns when f has; it may be called again, and is
// called when the test ends, also by a failed require: a bubble whose goroutines are left panics, and hides what the
// test has said.
func Go(t testing.TB, name string, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var group routine.Group
	group.Go(ctx, name, f)
	stop = func() { cancel(); group.Wait() }
	t.Cleanup(stop)
	return stop
}

// Drain receives until every goroutine of the bubble waits, and returns the values as text, with "closed" for the end
// of the channel.
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
	bubbles int // how many run now
	given   int // GOMAXPROCS before the first of them
}

// Test is [synctest.Test]; a race build has one processor while f runs. The runtime runs all timers of a bubble in one
// context of the race detector, also the timer that has expired before a goroutine reads its channel: that goroutine
// runs it. Two goroutines that do so at once, on two processors, crash the detector or leave it hanging,
// https://go.dev/issue/78156. The detector compares what happens before what, so it sees the races of goroutines that
// take turns, too.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if Race {
		oneProcessor(+1)
		defer oneProcessor(-1)
	}
	synctest.Test(t, f)
}

// Run is a subtest of that name in a bubble of its own.
func Run(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { Test(t, f) })
}

// oneProcessor counts the bubbles, and gives the processors back after the last.
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

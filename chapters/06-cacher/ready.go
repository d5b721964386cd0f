package cacher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

type status int

const (
	pending status = iota // no state yet, or no longer
	readyState
	stopped // for good
)

var errStopped = errors.New("apiserver cacher is stopped")

// ready says whether the cache may be read, and has the number of its generation. The state is
// ready when the reflector's goroutine has put a list into the cache, pending when its watch
// on the storage is lost:
//
//	pending ◄────► ready ────► stopped
//	   └──────────────────────────▲
//
// The generation counts how often it became ready. A watch that begins in one generation must
// not be registered in another: see [Cacher.register].
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/ready.go: ready
// Differs: one lock; upstream swaps the channel under a second one.
type ready struct {
	// Set by newReady, never changed.
	clock clock.PassiveClock

	mu              sync.RWMutex // guards the fields below; the last lock in the order
	state           status
	generation      int
	lastErr         error     // the reason for pending, nil if it has not been ready yet
	lastStateChange time.Time // decides Retry-After
	// Never sent to; closed unless pending, and made again when pending comes back.
	waitCh chan struct{}
}

func newReady(clk clock.PassiveClock) *ready {
	return &ready{clock: clk, lastStateChange: clk.Now(), waitCh: make(chan struct{})}
}

// check returns the generation, or an error that says why the cache may not be read; and, in both cases, the time since
// the last change of state.
func (r *ready) check() (generation int, since time.Duration, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	since = r.clock.Since(r.lastStateChange)
	switch {
	case r.state == readyState:
		return r.generation, since, nil
	case r.state == stopped:
		return 0, since, errStopped
	case r.lastErr != nil:
		return 0, since, fmt.Errorf("storage is (re)initializing: %w", r.lastErr)
	}
	return 0, since, errors.New("storage is (re)initializing")
}

// wait returns when ready, or with an error when stopped or when ctx is done.
func (r *ready) wait(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.done():
		}
		// Look again: between the closing of the channel and now, ready may have come and gone.
		_, _, err := r.check()
		if err == nil || errors.Is(err, errStopped) {
			return err
		}
	}
}

func (r *ready) done() <-chan struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.waitCh
}

// setReady returns the generation that has begun, or goes on.
func (r *ready) setReady() int { return r.set(readyState, nil) }

// setError takes note that the source is lost and returns the generation that has ended. err may be nil.
func (r *ready) setError(err error) int { return r.set(pending, err) }

// stop makes the last change.
func (r *ready) stop() { r.set(stopped, nil) }

// set changes the state and returns the newest generation.
func (r *ready) set(to status, err error) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == stopped {
		return r.generation
	}
	r.lastErr = err
	if r.state == to {
		return r.generation
	}
	switch {
	case to == pending:
		r.waitCh = make(chan struct{})
	case r.state == pending:
		close(r.waitCh)
	}
	if to == readyState {
		r.generation++
	}
	r.state, r.lastStateChange = to, r.clock.Now()
	return r.generation
}

const (
	retryAfterFactor = 0.06 // upstream's: twice as long after every twelve seconds
	maxRetryAfter    = 30   // upstream's, in seconds
)

// retryAfter returns the seconds for which a client should stay away from a cache that has been down for the given
// time: one second at first, thirty from about a minute on.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/util.go: calculateRetryAfterForUnreadyCache
func retryAfter(downtime time.Duration) int {
	seconds := math.Exp(retryAfterFactor * downtime.Seconds())
	return int(min(maxRetryAfter, max(1, seconds)))
}

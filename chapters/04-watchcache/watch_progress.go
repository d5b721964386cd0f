package watchcache

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// progressRequestPeriod is how often the storage is asked for progress, and how often waiting readers look at the
// clock, while there is a reader that waits.
const progressRequestPeriod = 100 * time.Millisecond

// ConditionalProgressRequester does something every 100 ms, but only while a reader waits for
// the outcome. An idle cache costs nothing.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/progress/watch_progress.go: ConditionalProgressRequester
// Differs: used a second time, to wake the readers, where upstream starts a goroutine per
// waiting reader.
type ConditionalProgressRequester struct {
	// Set by NewConditionalProgressRequester, never changed.
	clock   clock.WithTicker
	request func(context.Context) error

	// Guards the fields below; a leaf: no other lock is taken while it is held.
	mu      sync.Mutex
	cond    *sync.Cond // on mu: waiting has left 0, or stopped was set
	waiting int
	stopped bool
}

// NewConditionalProgressRequester returns a requester that calls request. Errors of request are ignored: a reader that
// waits finds out by waiting in vain.
func NewConditionalProgressRequester(clk clock.WithTicker,
	request func(context.Context) error) *ConditionalProgressRequester {
	pr := &ConditionalProgressRequester{clock: clk, request: request}
	pr.cond = sync.NewCond(&pr.mu)
	return pr
}

// Run calls request every 100 ms while a reader waits, until ctx is done. The first call after a quiet time comes at
// once.
func (pr *ConditionalProgressRequester) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, pr.stop)()
	timer := pr.clock.NewTimer(progressRequestPeriod)
	defer timer.Stop()
	for pr.park() {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
			pr.tick(ctx, timer)
		}
	}
}

// park returns when a reader waits, or with false when there is nothing left to wait for.
func (pr *ConditionalProgressRequester) park() bool {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	for pr.waiting == 0 && !pr.stopped {
		pr.cond.Wait()
	}
	return !pr.stopped
}

func (pr *ConditionalProgressRequester) tick(ctx context.Context, timer clock.Timer) {
	if pr.Waiting() == 0 {
		timer.Reset(0) // the period is over already: the next reader is served at once
		return
	}
	timer.Reset(progressRequestPeriod)
	_ = pr.request(ctx)
}

// Waiting returns how many readers wait.
func (pr *ConditionalProgressRequester) Waiting() int {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	return pr.waiting
}

func (pr *ConditionalProgressRequester) stop() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.stopped = true
	pr.cond.Signal()
}

// Add says that one more reader waits.
func (pr *ConditionalProgressRequester) Add() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.waiting++
	pr.cond.Signal()
}

// Remove says that one reader less waits.
func (pr *ConditionalProgressRequester) Remove() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.waiting--
}

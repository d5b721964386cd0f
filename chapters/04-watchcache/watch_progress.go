package watchcache

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/routine"
)

// progressRequestPeriod is how often the storage is asked for progress, and how often waiting readers look at the
// clock, while there is a reader that waits.
const progressRequestPeriod = 100 * time.Millisecond

// ConditionalProgressRequester does something every 100 ms, but only while a reader waits for
// the outcome. An idle cache costs nothing. The goroutine of Run makes the calls; an error is
// ignored, since the next call follows. Add and Remove do not block.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/progress/watch_progress.go: ConditionalProgressRequester
// Differs: used a second time, to wake the readers, where upstream starts a goroutine per
// waiting reader. The goroutine sleeps on a channel, upstream's on a condition variable, and
// the very first reader need not wait for a period to pass.
type ConditionalProgressRequester struct {
	// Set by NewConditionalProgressRequester, never changed.
	clock   clock.WithTicker
	request func(context.Context) error

	waiting atomic.Int64 // readers
	// Sent by Add, which does not wait, never closed; 1: a reader that comes while Run is
	// elsewhere is not forgotten.
	wake chan struct{}
}

// NewConditionalProgressRequester returns a requester that calls request while it runs.
func NewConditionalProgressRequester(clk clock.WithTicker,
	request func(context.Context) error) *ConditionalProgressRequester {
	return &ConditionalProgressRequester{clock: clk, request: request, wake: make(chan struct{}, 1)}
}

// Run calls request every 100 ms while a reader waits, until ctx is done; the first after a quiet time at once.
func (pr *ConditionalProgressRequester) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-pr.wake:
		}
		for pr.Waiting() > 0 && ctx.Err() == nil {
			_ = pr.request(ctx)
			_ = routine.Sleep(ctx, pr.clock, progressRequestPeriod) // ended early: the loop looks at ctx, too
		}
	}
}

// Waiting returns how many readers wait.
func (pr *ConditionalProgressRequester) Waiting() int { return int(pr.waiting.Load()) }

// Add says that one more reader waits.
func (pr *ConditionalProgressRequester) Add() {
	pr.waiting.Add(1)
	// After the count: Run, woken, finds the reader. If the channel is full, Run has yet to look.
	select {
	case pr.wake <- struct{}{}:
	default:
	}
}

// Remove says that one reader less waits.
func (pr *ConditionalProgressRequester) Remove() { pr.waiting.Add(-1) }

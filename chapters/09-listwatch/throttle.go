package listwatch

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/routine"
)

// tokenBucket limits requests: each takes a token, tokens come back at a steady rate, and a
// bucket that was left alone is full. Safe for concurrent use.
//
// Upstream: k8s.io/client-go/util/flowcontrol/throttle.go: NewTokenBucketRateLimiter
// Differs: on an injected clock, and written out; upstream wraps golang.org/x/time/rate.
type tokenBucket struct {
	// Set by newTokenBucket, never changed.
	qps   float64
	burst float64
	clock clock.Clock

	mu     sync.Mutex // guards the fields below; innermost
	tokens float64    // as of last; negative: that many requests are waiting
	last   time.Time
}

func newTokenBucket(qps float64, burst int, clk clock.Clock) *tokenBucket {
	return &tokenBucket{qps: qps, burst: float64(burst), clock: clk, tokens: float64(burst), last: clk.Now()}
}

// Wait returns nil once the caller may go on, or the error of ctx. Callers are let through in the order they came.
func (b *tokenBucket) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	delay := b.take()
	if delay == 0 {
		return nil
	}
	if err := routine.Sleep(ctx, b.clock, delay); err != nil {
		b.giveBack()
		return err
	}
	return nil
}

// take removes a token, which may be one that does not exist yet, and returns how long until it
// does.
func (b *tokenBucket) take() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.qps)
	b.last = now
	b.tokens--
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens / b.qps * float64(time.Second))
}

func (b *tokenBucket) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens++
}

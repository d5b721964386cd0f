package routine

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Every calls f each period on clk until ctx is done, for the first time after one period.
func Every(ctx context.Context, clk clock.WithTicker, period time.Duration, f func(context.Context)) {
	ticker := clk.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			f(ctx)
		}
	}
}

// Sleep waits for d on clk. It returns the error of ctx, at once, when that is done first.
func Sleep(ctx context.Context, clk clock.Clock, d time.Duration) error {
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// WithTimeout returns a context that is done after d on clk, or when parent is. The caller calls end when it no longer
// needs the context; end returns when its goroutine has ended.
func WithTimeout(parent context.Context, clk clock.Clock, d time.Duration) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(parent)
	var group Group
	group.Go(ctx, "routine.timeout", func(ctx context.Context) {
		defer cancel()
		_ = Sleep(ctx, clk, d)
	})
	return ctx, func() { cancel(); group.Wait() }
}

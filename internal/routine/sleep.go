package routine

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

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

package routine_test

import (
	"context"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWaitReturnsWhenEveryBodyHasEnded(t *testing.T) {
	var g routine.Group
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 2) // sent by the bodies, never closed; room for both
	body := func(ctx context.Context) {
		label, _ := pprof.Label(ctx, "routine")
		<-ctx.Done()
		ended <- label
	}
	g.Go(ctx, "test.one", body)
	g.Go(ctx, "test.two", body)
	cancel()
	g.Wait()
	require.Equal(t, 2, len(ended), "got %d bodies ended after Wait, want 2", len(ended))
	names := map[string]bool{<-ended: true, <-ended: true}
	assert.True(t, names["test.one"] && names["test.two"], "labels: got %v, want test.one and test.two", names)
}

func TestEveryCallsAfterEachPeriodUntilTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var g routine.Group
		var at []time.Duration
		start := time.Now()
		g.Go(ctx, "test.every", func(ctx context.Context) {
			routine.Every(ctx, clock.RealClock{}, time.Minute, func(context.Context) {
				at = append(at, time.Since(start))
			})
		})
		time.Sleep(2*time.Minute + time.Second)
		cancel()
		g.Wait()
		assert.EqualSlices(t, []time.Duration{time.Minute, 2 * time.Minute}, at)
	})
}

// TestLateAreTheGoroutinesThatKeepTheProgram: Late names each running goroutine whose context is done, each name once.
func TestLateAreTheGoroutinesThatKeepTheProgram(t *testing.T) {
	end := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var outer, inner routine.Group
	inner.Go(ctx, "test.waits", func(context.Context) { <-end })
	inner.Go(ctx, "test.waits", func(context.Context) { <-end })
	outer.Go(ctx, "test.between", func(context.Context) { inner.Wait() })
	outer.Go(t.Context(), "test.runs", func(context.Context) { <-end })
	assert.EqualSlices(t, nil, routine.Late())
	cancel()
	eventually.Holds(t, "it has begun", func() bool {
		return slices.Equal(routine.Late(), []string{"test.between", "test.waits"})
	})
	close(end)
	outer.Wait()
	assert.EqualSlices(t, nil, routine.Late())
}

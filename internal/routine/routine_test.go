package routine

import (
	"context"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"listwatch/internal/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWaitReturnsWhenEveryBodyHasEnded(t *testing.T) {
	var g Group
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
	if len(ended) != 2 {
		t.Fatalf("got %d bodies ended after Wait, want 2", len(ended))
	}
	names := map[string]bool{<-ended: true, <-ended: true}
	if !names["test.one"] || !names["test.two"] {
		t.Errorf("labels: got %v, want test.one and test.two", names)
	}
}

func TestAPoolRunsAsManyAsItMayAndReusesThem(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var g Group
		ctx, cancel := context.WithCancel(t.Context())
		pool := NewPool(&g, "test.pool", 2)
		running, finish := 0, make(chan struct{}) // finish: received by the bodies, one each
		var mu sync.Mutex
		body := func(context.Context) {
			mu.Lock()
			running++
			mu.Unlock()
			<-finish
		}
		go func() {
			for range 5 {
				pool.Go(ctx, body)
			}
		}()
		for _, want := range []int{2, 3, 4, 5} {
			synctest.Wait()
			if running != want {
				t.Fatalf("got %d bodies begun, want %d", running, want)
			}
			finish <- struct{}{}
		}
		finish <- struct{}{}
		synctest.Wait()
		if pool.started != 2 {
			t.Errorf("got %d goroutines, want 2", pool.started)
		}
		cancel()
		g.Wait()
		pool.Go(ctx, func(context.Context) { t.Error("run after the end") })
	})
}

func TestEveryCallsAfterEachPeriodUntilTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var g Group
		var at []time.Duration
		start := time.Now()
		g.Go(ctx, "test.every", func(ctx context.Context) {
			Every(ctx, clock.RealClock{}, time.Minute, func(context.Context) { at = append(at, time.Since(start)) })
		})
		time.Sleep(2*time.Minute + time.Second)
		cancel()
		g.Wait()
		if !slices.Equal(at, []time.Duration{time.Minute, 2 * time.Minute}) {
			t.Errorf("got %v, want one call a minute", at)
		}
	})
}

package watchcache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/routine"
)

// running calls body in a bubble in which the cache runs.
func running(t *testing.T, body func(f *fixture, stop func())) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, 10)
		f.list(5, pod("default/a", 5, ""))
		ctx, cancel := context.WithCancel(t.Context())
		var group routine.Group
		group.Go(ctx, "watchCache.Run", f.Run)
		synctest.Wait()
		body(f, func() { cancel(); group.Wait() })
		cancel()
		group.Wait()
	})
}

func TestAReaderWaitsForAVersionAndIsWokenByIt(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		start := time.Now()
		got := make(chan error, 1)
		new(routine.Group).Go(f.t.Context(), "reader", func(context.Context) {
			got <- f.WaitUntilFresh(f.t.Context(),
				root, 7)
		})
		time.Sleep(50 * time.Millisecond)
		f.is("waiting", f.Snapshot().Waiting, "1")
		f.add("default/b", 6)
		synctest.Wait()
		f.is("still waiting", f.Snapshot().Waiting, "1")
		f.UpdateResourceVersion("8")
		f.must(<-got)
		f.is("waited", time.Since(start), "50ms")
		f.is("measured", f.waits.seconds, "[0.05]")
		f.is("waiting", f.Snapshot().Waiting, "0")

		start = time.Now()
		new(routine.Group).Go(f.t.Context(), "reader", func(context.Context) {
			got <- f.WaitUntilFresh(f.t.Context(),
				root, 9)
		})
		time.Sleep(30 * time.Millisecond)
		f.add("default/c", 9)
		f.must(<-got)
		f.is("waited for an event", time.Since(start), "30ms")
	})
}

func TestAVersionThatDoesNotComeIsTooLargeAfterThreeSeconds(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		time.Sleep(time.Hour)
		start := time.Now()
		err := f.WaitUntilFresh(f.t.Context(), root, 100)
		f.is("waited", time.Since(start), "3s")
		if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			f.t.Errorf("got %v", err)
		}
		seconds, ok := apierrors.SuggestsClientDelay(err)
		assert.True(f.t, ok && seconds == 1, "retry after %d, %v", seconds, ok)
	})
}

func TestAReaderIsAnsweredThoughTheClockStands(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		f.config.Clock = clocktesting.NewFakeClock(time.Now()) // the world is held; Patience is what it was
		start := time.Now()
		err := f.WaitUntilFresh(f.t.Context(), root, 100)
		f.is("waited", time.Since(start), "3s")
		if !apierrors.IsTimeout(err) || f.progress == 0 {
			f.t.Errorf("got %v, asked for progress %d times", err, f.progress)
		}
	})
}

func TestProgressIsAskedForOnlyWhileSomebodyWaits(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		time.Sleep(time.Hour)
		f.is("requests without readers", f.progress, "0")
		new(routine.Group).Go(f.t.Context(), "writer", func(context.Context) {
			f.UpdateResourceVersionAfter(
				time.Second, "9")
		})
		f.must(f.WaitUntilFresh(f.t.Context(), root, 9))
		f.is("requests in a second", f.progress, "10")
		time.Sleep(time.Hour)
		f.is("requests afterwards", f.progress, "10")
	})
}

func (f *fixture) UpdateResourceVersionAfter(d time.Duration, rv string) {
	time.Sleep(d - time.Millisecond)
	f.UpdateResourceVersion(rv)
}

func TestAReaderWhoseRequestEndsStopsWaiting(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		ctx, cancel := context.WithCancel(f.t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		err := f.WaitUntilFresh(ctx, root, 100)
		assert.True(f.t, errors.Is(err, context.Canceled), "got %v", err)
		waited := time.Since(start)
		assert.True(f.t, waited <= time.Second+progressRequestPeriod, "waited %v", waited)
	})
}

func TestNobodyWaitsForACacheThatIsStopped(t *testing.T) {
	running(t, func(f *fixture, stop func()) {
		got := make(chan error, 1)
		new(routine.Group).Go(f.t.Context(), "reader", func(context.Context) {
			got <- f.WaitUntilFresh(f.t.Context(),
				root, 100)
		})
		synctest.Wait()
		stop()
		assert.Fails(f.t, <-got, apierrors.IsServiceUnavailable, "while waiting")
		assert.Fails(f.t, f.WaitUntilFresh(f.t.Context(), root, 100), apierrors.IsServiceUnavailable, "afterwards")
	})
}

func TestAConsistentListWaitsForWhatTheStorageHas(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		f.current = 8
		new(routine.Group).Go(f.t.Context(), "writer", func(context.Context) {
			f.UpdateResourceVersionAfter(
				time.Second, "8")
		})
		list, err := f.GetList(f.t.Context(), root, storage.ListOptions{Recursive: true})
		f.must(err)
		f.is("list", names(list), "default/a 5")
		f.is("version", list.ResourceVersion, "8")
	})
}

func TestAnExactListOfTheFutureWaits(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		new(routine.Group).Go(f.t.Context(), "writer", func(context.Context) {
			f.UpdateResourceVersionAfter(
				time.Second, "8")
		})
		list := f.exact(7)
		f.is("version", list.ResourceVersion, "7")
	})
}

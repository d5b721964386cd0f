package reflector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/routine"
)

func TestDelaysDoubleUpToHalfAMinute(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &backoff{clock: clock.RealClock{}, jitter: func() float64 { return 0 }}
		want := []string{"800ms", "1.6s", "3.2s", "6.4s", "12.8s", "25.6s", "30s", "30s", "30s", "30s", "30s", "30s",
			"30s"}
		for i, want := range want {
			got := b.delay()
			if got.String() != want {
				t.Errorf("delay %d after %v of outage: got %v, want %s", i, time.Since(b.until.Add(-got)), got, want)
			}
			time.Sleep(got)
		}
	})
}

func TestDelaysBeginAgainAfterTwoMinutesOfHealth(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &backoff{clock: clock.RealClock{}, jitter: func() float64 { return 0 }}
		time.Sleep(b.delay())
		time.Sleep(b.delay())
		time.Sleep(backoffReset - time.Nanosecond)
		assert.Equal(t, b.delay(), 3200*time.Millisecond, "a nanosecond too early")
		time.Sleep(3200*time.Millisecond + backoffReset)
		assert.Equal(t, b.delay(), backoffInit, "after two minutes")
	})
}

func TestJitterAtMostDoublesADelay(t *testing.T) {
	b := &backoff{clock: clock.RealClock{}, jitter: func() float64 { return 0.5 }}
	assert.Equal(t, b.delay(), 1200*time.Millisecond, "first")
	assert.Equal(t, b.delay(), 2400*time.Millisecond, "second")
}

func TestRetryForgetsAfterAMinuteWithoutErrors(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		oops := errors.New("oops")
		r := &retryWithDeadline{
			maxRetryDuration: 30 * time.Second, minResetPeriod: time.Minute, clock: clock.RealClock{},
			isRetryable: func(err error) bool { return err == oops },
		}
		r.After(oops)
		time.Sleep(30 * time.Second)
		r.After(nil) // neither counts nor resets
		assert.True(t, r.ShouldRetry(), "30 s after the first error: got no retry, want one")
		time.Sleep(time.Nanosecond)
		assert.False(t, r.ShouldRetry(), "later than 30 s after the first error: got a retry, want none")
		r.After(oops)
		assert.True(t, r.ShouldRetry(), "having refused once, a new period: got no retry, want one")
		time.Sleep(time.Minute)
		r.After(oops)
		assert.True(t, r.ShouldRetry(), "first error in a minute: got no retry, want one")
	})
}

func TestRetryIsOffByDefault(t *testing.T) {
	r := &retryWithDeadline{clock: clock.RealClock{}, isRetryable: func(error) bool { return true }}
	r.After(errors.New("oops"))
	assert.False(t, r.ShouldRetry(), "got a retry, want none")
}

func TestResyncTouchesTheStoreAndNeverTheServer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &record{}
		allowed := true
		r := newTestReflector(s, store, func(c *Config) {
			c.ResyncPeriod = time.Minute
			c.ShouldResync = func() bool { allowed = !allowed; return !allowed }
		})
		stop := running(t, r)
		time.Sleep(4*time.Minute + time.Second)
		wantLog(t, "store", store.log(), "replace [] at 1; resync; resync") // every second period was allowed
		stop()
		time.Sleep(4 * time.Minute)
		wantLog(t, "store after the end", store.log(), "")
		wantLog(t, "asked", s.log(), "0s list rv=0 limit=500\n0s watch rv=1")
	})
}

func TestFailedResyncEndsTheRound(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &record{resyncErr: errors.New("full")}
		r := newTestReflector(s, store, func(c *Config) { c.ResyncPeriod = time.Minute })
		stop := running(t, r)
		first := s.last()
		time.Sleep(61 * time.Second)
		assert.True(t, first.isStopped(), "the watch was not stopped")
		stop()
		wantLog(t, "asked", s.log(),
			"0s list rv=0 limit=500\n0s watch rv=1\n1m0.8s list rv=1 limit=0\n1m0.8s watch rv=1")
	})
}

func TestCancelWaitsForAResyncUnderway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &slowResync{began: make(chan struct{}), finish: make(chan struct{})}
		r := newTestReflector(s, store, func(c *Config) { c.ResyncPeriod = time.Minute })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		new(routine.Group).Go(ctx, "reflector.Run", func(ctx context.Context) { r.Run(ctx); close(done) })
		<-store.began
		cancel()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("Run ended while the store was being resynced")
		default:
		}
		close(store.finish)
		<-done
	})
}

type slowResync struct {
	record
	began, finish chan struct{}
}

func (s *slowResync) Resync() error { close(s.began); <-s.finish; return nil }

func TestWatchGoesOnForHoursWithoutAnEvent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &record{}
		s.onWatch(played(8*time.Minute), played(8*time.Minute), played(8*time.Minute))
		stop := running(t, newTestReflector(s, store, nil))
		time.Sleep(time.Hour)
		s.last().send(watch.Added, pod("a", "9"))
		synctest.Wait()
		stop()
		wantLog(t, "asked", s.log(),
			"0s list rv=0 limit=500\n0s watch rv=1\n8m0s watch rv=1\n16m0s watch rv=1\n24m0s watch rv=1")
		wantLog(t, "store", store.log(), "replace [] at 1; add a@9")
	})
}

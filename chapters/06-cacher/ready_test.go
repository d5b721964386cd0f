package cacher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/routine"
)

func TestRetryAfterGrowsWithTheDowntime(t *testing.T) {
	for seconds, want := range map[int]int{0: 1, 5: 1, 11: 1, 12: 2, 18: 2, 20: 3, 30: 6, 40: 11, 57: 30, 600: 30} {
		if got := retryAfter(time.Duration(seconds) * time.Second); got != want {
			t.Errorf("after %d s: got %d, want %d", seconds, got, want)
		}
	}
}

func TestEveryReturnToReadyIsAnotherGeneration(t *testing.T) {
	r := newReady(clock.RealClock{})
	if _, _, err := r.check(); err == nil {
		t.Error("ready at birth")
	}
	for want := 1; want < 4; want++ {
		if got := r.setReady(); got != want {
			t.Errorf("setReady: got %d, want %d", got, want)
		}
		r.setReady() // a relist without an interruption goes on with the same one
		if generation, _, err := r.check(); generation != want || err != nil {
			t.Errorf("check: got %d, %v, want %d", generation, err, want)
		}
		cause := errors.New("the dog ate it")
		r.setError(cause)
		if _, _, err := r.check(); !errors.Is(err, cause) {
			t.Errorf("check: got %v, want the cause", err)
		}
	}
}

func TestAStoppedCacherIsNeverReadyAgain(t *testing.T) {
	r := newReady(clock.RealClock{})
	r.stop()
	r.stop()
	r.setReady()
	r.setError(nil)
	if _, _, err := r.check(); !errors.Is(err, errStopped) {
		t.Errorf("got %v, want %v", err, errStopped)
	}
	if err := r.wait(context.Background()); !errors.Is(err, errStopped) {
		t.Errorf("wait: got %v, want %v", err, errStopped)
	}
}

func TestWaitingForReadyEndsWithReadyWithStopOrWithTheContext(t *testing.T) {
	for name, end := range map[string]func(r *ready, cancel func()){
		"ready":   func(r *ready, _ func()) { r.setReady() },
		"stopped": func(r *ready, _ func()) { r.stop() },
		"context": func(_ *ready, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := newReady(clock.RealClock{})
				r.setReady()
				r.setError(nil) // waits on the second channel
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				got := make(chan error, 1)
				new(routine.Group).Go(ctx, "test.reader", func(ctx context.Context) { got <- r.wait(ctx) })
				synctest.Wait()
				if len(got) > 0 {
					t.Fatal("did not wait")
				}
				end(r, cancel)
				if err := <-got; (err == nil) != (name == "ready") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestTheTimeOfAStateIsThatOfTheChange(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newReady(clock.RealClock{})
		r.setReady()
		time.Sleep(time.Minute)
		r.setError(nil)
		time.Sleep(10 * time.Second)
		r.setError(errors.New("again")) // still the same downtime
		time.Sleep(10 * time.Second)
		if _, since, _ := r.check(); since != 20*time.Second {
			t.Errorf("got %v, want 20s", since)
		}
	})
}

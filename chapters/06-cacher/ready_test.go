package cacher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

func TestRetryAfterGrowsWithTheDowntime(t *testing.T) {
	for seconds, want := range map[int]int{0: 1, 5: 1, 11: 1, 12: 2, 18: 2, 20: 3, 30: 6, 40: 11, 57: 30, 600: 30} {
		assert.Equal(t, retryAfter(time.Duration(seconds)*time.Second), want, "after %d s", seconds)
	}
}

func TestEveryReturnToReadyIsAnotherGeneration(t *testing.T) {
	r := newReady(clock.RealClock{})
	_, _, err := r.check()
	assert.True(t, err != nil, "ready at birth")
	for want := 1; want < 4; want++ {
		assert.Equal(t, r.setReady(), want, "setReady")
		r.setReady() // a relist without an interruption goes on with the same one
		generation, _, err := r.check()
		assert.True(t, generation == want && err == nil, "check: got %d, %v, want %d", generation, err, want)
		cause := errors.New("the dog ate it")
		r.setError(cause)
		_, _, err = r.check()
		assert.True(t, errors.Is(err, cause), "check: got %v, want the cause", err)
	}
}

func TestAStoppedCacherIsNeverReadyAgain(t *testing.T) {
	r := newReady(clock.RealClock{})
	r.stop()
	r.stop()
	r.setReady()
	r.setError(nil)
	_, _, err := r.check()
	assert.True(t, errors.Is(err, errStopped), "got %v, want %v", err, errStopped)
	err = r.wait(context.Background())
	assert.True(t, errors.Is(err, errStopped), "wait: got %v, want %v", err, errStopped)
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
				require.True(t, len(got) == 0, "did not wait")
				end(r, cancel)
				err := <-got
				assert.Equal(t, err == nil, name == "ready", "got %v", err)
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
		_, since, _ := r.check()
		assert.Equal(t, since, 20*time.Second)
	})
}

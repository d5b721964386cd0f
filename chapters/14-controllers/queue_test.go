package controllers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs body with a rate limiting queue whose waiting loop runs on the bubble's clock.
func inBubble(t *testing.T, body func(t *testing.T, q *RateLimitingQueue)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		q := NewRateLimitingQueue(clock.RealClock{}, nil)
		stop := bubble.Go(t, "workqueue.waitingLoop", q.Run)
		body(t, q)
		q.ShutDown()
		stop()
	})
}

func mustGet(t *testing.T, q *RateLimitingQueue, want string) {
	t.Helper()
	require.True(t, q.Snapshot().Len != 0, "queue is empty, want %q in it", want)
	got, shutdown := q.Get()
	require.True(t, got == want && !shutdown, "Get() = %q, %v; want %q, false", got, shutdown, want)
}

func TestAddsWhileWorkingAreExactlyOneMoreRun(t *testing.T) {
	inBubble(t, func(t *testing.T, q *RateLimitingQueue) {
		q.Add("a")
		mustGet(t, q, "a")
		q.Add("a")
		q.Add("a")
		require.Equal(t, 0, q.Snapshot().Len, "keys queued while a is being worked on")
		q.Done("a")
		mustGet(t, q, "a")
		q.Done("a")
		assert.Equal(t, 0, q.Snapshot().Len, "keys left")
	})
}

func TestABurstOfUpdatesIsAHandfulOfReconciles(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q := NewQueue(probetest.Probe(t, "worker"))
		var state atomic.Int64 // of the one object, as a cache would show it
		reconciles, seen := 0, int64(0)
		var g routine.Group
		g.Go(t.Context(), "worker", func(context.Context) {
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				seen = state.Load()
				reconciles++
				time.Sleep(100 * time.Millisecond)
				q.Done(key)
			}
		})
		for range 1000 {
			state.Add(1)
			q.Add("default/a")
			time.Sleep(300 * time.Microsecond) // 300 ms in all
		}
		q.ShutDown()
		g.Wait()
		assert.Equal(t, 1000, seen, "the last reconcile saw state %d, want 1000", seen)
		assert.True(t, reconciles >= 2 && reconciles <= 5, "%d reconciles, want a handful", reconciles)
	})
}

// Each key comes once, at the earliest time that was asked for, and the earliest key comes first.
func TestTheEarlierOfTwoDelaysCountsAndFiresOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, q *RateLimitingQueue) {
		for _, each := range []struct {
			key     string
			seconds time.Duration
		}{{"c", 3}, {"a", 5}, {"a", 1}, {"b", 2}, {"b", 20}, {"now", 0}} {
			q.AddAfter(each.key, each.seconds*time.Second)
		}
		for _, want := range []string{"now", "a", "b", "c"} {
			mustGet(t, q, want)
			q.Done(want)
			time.Sleep(time.Second - time.Nanosecond)
			synctest.Wait()
			assert.Equal(t, 0, q.Snapshot().Len, "keys came before their time, after %s", want)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
		}
		assert.Equal(t, 0, q.Snapshot().Waiting, "keys wait")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		assert.Equal(t, 0, q.Snapshot().Len, "fired more times")
	})
}

func TestAddAfterBlocksAtAThousandUntilTheLoopTakesThem(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q := NewDelayingQueue(clock.RealClock{}, nil)
		var g routine.Group
		sent := 0
		g.Go(t.Context(), "sender", func(context.Context) {
			for range waitingForAddSize + 1 {
				q.AddAfter("a", time.Hour)
				sent++
			}
		})
		synctest.Wait()
		assert.Equal(t, waitingForAddSize, sent, "AddAfter that returned without a waiting loop")
		q.ShutDown()
		g.Wait() // ShutDown lets the blocked one go
		assert.Equal(t, waitingForAddSize+1, sent, "AddAfter that returned after ShutDown")
	})
}

func TestTheDelayOfAKeyNeverExceedsAThousandSeconds(t *testing.T) {
	q := NewRateLimitingQueue(clock.RealClock{}, nil)
	var got time.Duration
	for range 200 {
		got = q.when("a")
	}
	assert.Equal(t, maxDelay, got, "the 200th delay is %v, want %v", got, maxDelay)
}

func TestTheBucketSlowsDownWhatNoKeyAloneWould(t *testing.T) {
	inBubble(t, func(t *testing.T, q *RateLimitingQueue) {
		var delays []time.Duration
		for i := range bucketBurst + 3 {
			delays = append(delays, q.AddRateLimited(string(rune('A'+i))))
		}
		for i, delay := range delays[:bucketBurst] {
			assert.Equal(t, 5*time.Millisecond, delay, "the burst is not spent: failure %d waits", i)
		}
		want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond}
		assert.EqualSlices(t, want, delays[bucketBurst:], "beyond the burst failures wait")
	})
}

func TestShutDownLetsWorkersFinishWhatIsQueuedAndWanted(t *testing.T) {
	inBubble(t, func(t *testing.T, q *RateLimitingQueue) {
		q.Add("a")
		mustGet(t, q, "a")
		q.Add("a") // wanted again
		q.Add("b")
		q.ShutDown()
		q.Add("c")
		q.Done("a")
		mustGet(t, q, "b")
		mustGet(t, q, "a")
		q.Done("a")
		key, shutdown := q.Get()
		assert.True(t, shutdown, "Get() = %q after the last key, want shutdown", key)
	})
}

// moody is a reconciler that fails as often as it is told to.
type moody struct{ failures, looks int }

func (m *moody) reconcile(context.Context, string) (outcome, error) {
	m.looks++
	if m.failures > 0 {
		m.failures--
		return outcome{}, errors.New("not today")
	}
	return outcome{did: "done"}, nil
}

// A key that failed is forgiven when it has succeeded: its next failure, next week, is a first one again.
func TestSuccessEndsTheMemoryOfFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, q *RateLimitingQueue) {
		m := &moody{failures: 3}
		w := &worker{queue: q, reconciler: m}
		process := func(want time.Duration) {
			t.Helper()
			began := time.Now()
			w.processNextWorkItem(t.Context())
			assert.Equal(t, want, time.Since(began), "look %d came after", m.looks)
		}
		q.Add("a")
		for _, want := range []time.Duration{0, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
			process(want)
		}
		m.failures = 1
		q.Add("a")
		process(0)
		process(5 * time.Millisecond)
	})
}

func TestProbesTellTheLifeOfAKey(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 0)
	q := NewQueue(probe.New(log).Subject("scheduler"))
	q.Add("a")
	q.Get()
	q.Add("a")
	q.Done("a")
	type moment struct {
		point probe.Point
		len   int
	}
	want := []moment{{probe.WorkAdded, 1}, {probe.WorkGot, 0}, {probe.WorkAdded, 0}, {probe.WorkDone, 0},
		{probe.WorkAdded, 1}}
	var got []moment
	for _, r := range probetest.Records(log) {
		assert.True(t, r.Key == "a" && r.Subject == "scheduler", "%v is about %q of %q", r.Point, r.Key, r.Subject)
		got = append(got, moment{r.Point, r.Args[0]})
	}
	assert.EqualSlices(t, want, got)
}

package fold

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"pgregory.net/rapid"
)

// TestQuietLanesAreCountedAsLoudOnes lets the same happen twice: with every lane loud, and with lanes that become loud
// and quiet on the way. Counters and queues are the same in the end, and a goroutine that waits is shown as waiting.
func TestQuietLanesAreCountedAsLoudOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		loud, quiet := happened(seed, 0), happened(seed, 1)
		for _, point := range []string{"InputSent", "InputReceived", "ResultSent", "ResultReceived"} {
			got, want := quiet.Points[point], loud.Points[point]
			require.Equal(t, got, want, point)
		}
		for id, want := range loud.Subjects {
			for name, queue := range want.Queues {
				got := quiet.Subjects[id].queue(name)
				if got.Len != queue.Len || got.Sent != queue.Sent || got.Received != queue.Received || got.Len > 0 &&
					got.Cap != queue.Cap {
					t.Fatalf("%s of %s: got %+v, want %+v", name, id, got, queue)
				}
			}
		}
		for _, key := range []string{"ResultBlocked w1", "ResultBlocked w2", "ResultBlocked w3"} {
			got, want := len(quiet.Waits[key]), len(loud.Waits[key])
			require.Equal(t, got, want, "%s: got %d waits, want %d", key, got, want)
		}
	})
}

// happened returns the picture of three watchers after what the seed chooses, if limit of them are loud; 0: all.
func happened(seed uint64, limit int) *Resource {
	random := rand.New(rand.NewPCG(seed, 0))
	log := probe.NewLog(clock.RealClock{}, 1<<12)
	log.LimitLoud(limit, nil)
	type watcher struct {
		p             *probe.Probe
		input, result int
		blocked       bool
	}
	var watchers []*watcher
	for i := range 3 {
		w := &watcher{p: probe.New(log).Resource("pods").Lane(fmt.Sprint("w", i+1))}
		w.p.At(probe.WatcherAdded, "", 1, 10)
		watchers = append(watchers, w)
	}
	for range 200 {
		w := watchers[random.IntN(len(watchers))]
		switch n := random.IntN(12); {
		case n == 0:
			log.SumLanes()
		case n == 1:
			log.Look("pods", w.p.ID())
		case n < 6 && w.input < 10:
			w.input++
			w.p.Event(probe.InputSent, "ADDED", "default/a", 1, w.input, 10)
		case n < 9 && w.input > 0 && w.result == 10 && !w.blocked:
			w.blocked = true
			w.p.Event(probe.ResultBlocked, "ADDED", "default/a", 1)
		case n < 9 && w.input > 0 && w.result < 10:
			w.input--
			w.result++
			w.blocked = false
			w.p.Event(probe.InputReceived, "ADDED", "default/a", 1, w.input, 10)
			w.p.Event(probe.ResultSent, "ADDED", "default/a", 1, w.result, 10)
		case n >= 9 && w.result > 0:
			w.result--
			w.p.Event(probe.ResultReceived, "ADDED", "default/a", 1, w.result, 10)
		}
	}
	log.SumLanes()
	state := New()
	records, _ := log.Since(nil, 0, 1<<12)
	state.Apply(records)
	return state.Resources["pods"]
}

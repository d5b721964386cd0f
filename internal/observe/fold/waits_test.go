package fold

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// waitsNow returns the points of the waits that have begun and not ended, with their subjects, and how many of each.
func waitsNow(records []probe.Record) map[string]int {
	now := map[string]int{}
	for key, waits := range folded(records).Resources["pods"].Waits {
		now[key] = len(waits)
	}
	return now
}

func TestAWaitSaysWhoWaitsSinceWhenAndWhere(t *testing.T) {
	s := folded(in(
		rec(probe.WatcherAdded, "w3", "", "", 1, 10),
		rec(probe.InputBlocked, "w3", "ADDED", "a", 7),
	))
	want := map[string][]Wait{"InputBlocked w3": {{
		Seq: 2, T: int64(time.Millisecond), Point: "InputBlocked", Kind: "room", Subject: "w3",
		Lane: "cacher.dispatchEvents",
		On:   "input", Token: Token{"ADDED", "a", 7},
	}}}
	assert.NoDiff(t, want, s.Resources["pods"].Waits, "waits")
}

func TestAWaitEndsWithOneOfItsEndsAndWithItsSubject(t *testing.T) {
	opened := rec(probe.WatcherAdded, "w3", "", "", 1, 10)
	blocked := rec(probe.InputBlocked, "w3", "ADDED", "a", 7)
	for _, test := range []struct {
		name    string
		records []probe.Record
		want    map[string]int
	}{
		{"begun", in(opened, blocked), map[string]int{"InputBlocked w3": 1}},
		{"sent", in(opened, blocked, rec(probe.InputSent, "w3", "ADDED", "a", 7, 10, 10)), nil},
		{"forced", in(opened, blocked, rec(probe.WatcherForced, "w3", "", "", 0)), nil},
		{"another watcher's", in(opened, blocked, rec(probe.InputSent, "w4", "ADDED", "a", 7, 10, 10)),
			map[string]int{"InputBlocked w3": 1}},
		{"gone", in(opened, blocked, rec(probe.WatcherRemoved, "w3", "", "", 0)), nil},
		{"a gap", append(in(opened, blocked), probe.Record{Seq: 12, Point: probe.RVAdvanced, Resource: "pods"}), nil},
		{"late word", in(blocked, rec(probe.ResultReceived, "w3", "ADDED", "a", 7, 0, 10)), nil},
		{"write after write", in(opened,
			rec(probe.ResultReceived, "w3", "ADDED", "a", 7, 1, 10), rec(probe.FrameWritten, "w3", "ADDED", "a", 7, 80,
				1),
			rec(probe.ResultReceived, "w3", "ADDED", "b", 8, 0, 10)), map[string]int{"ResultReceived w3": 1}},
		{"the hand-over before it, reported late", in(
			rec(probe.ListenerAdded, "l1", "", "", 0), rec(probe.AddBlocked, "l1", "MODIFIED", "default/a", 8),
			rec(probe.AddReceived, "l1", "ADDED", "default/a", 7),
		), map[string]int{"AddBlocked l1": 1}},
		{"handed over", in(
			rec(probe.ListenerAdded, "l1", "", "", 0), rec(probe.AddBlocked, "l1", "MODIFIED", "default/a", 8),
			rec(probe.AddReceived, "l1", "MODIFIED", "default/a", 8),
		), nil},
		{"the end of a stream", in(rec(probe.StreamBlocked, "informer", "ADDED", "a", 7), rec(probe.StreamEnded,
			"informer", "", "", 0)), nil},
		{"two readers", in(
			rec(probe.FreshnessWait, "", "", "a", 7), rec(probe.FreshnessWait, "", "", "a", 9),
			rec(probe.FreshnessReady, "", "", "a", 9),
		), map[string]int{"FreshnessWait ": 1}},
		{"two workers", in(
			rec(probe.WorkWaited, "scheduler", "", "", 0), rec(probe.WorkWaited, "scheduler", "", "", 0),
			rec(probe.WorkWoken, "scheduler", "", "", 0),
			rec(probe.WorkGot, "scheduler", "", "default/a", 0, 0, 0),
		), map[string]int{"WorkWaited scheduler": 1, "WorkGot scheduler": 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := test.want
			if want == nil {
				want = map[string]int{}
			}
			assert.NoDiff(t, want, waitsNow(test.records), "waits")
		})
	}
}

// TestQuietLanesAreCountedAsLoudOnes lets the same happen twice: with every lane loud, and with lanes that become loud
// and quiet on the way. Counters and queues are the same in the end, and a goroutine that waits is shown as waiting.
func TestQuietLanesAreCountedAsLoudOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		loud, quiet := happened(seed, 0), happened(seed, 1)
		for _, point := range []string{"InputSent", "InputReceived", "ResultSent", "ResultReceived"} {
			got, want := quiet.Points[point], loud.Points[point]
			require.Equal(t, want, got, point)
		}
		for id, want := range loud.Subjects {
			for name, queue := range want.Queues {
				got := quiet.Subjects[id].queue(name)
				require.True(t, got.Len == queue.Len && got.Sent == queue.Sent && got.Received == queue.Received &&
					(got.Len <= 0 || got.Cap == queue.Cap), "%s of %s: got %+v, want %+v", name, id, got, queue)
			}
		}
		for _, key := range []string{"ResultBlocked w1", "ResultBlocked w2", "ResultBlocked w3"} {
			got, want := len(quiet.Waits[key]), len(loud.Waits[key])
			require.Equal(t, want, got, "%s: got %d waits, want %d", key, got, want)
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

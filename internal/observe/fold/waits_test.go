package fold

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// waitsNow returns the number of waits of pods that have begun and not ended in the records, by point and subject.
func waitsNow(records []probe.Record) map[string]int {
	now := map[string]int{}
	for key, waits := range folded(records).Resources["pods"].Waits {
		now[key] = len(waits)
	}
	return now
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
		{"write after write", in(opened, rec(probe.ResultReceived, "w3", "ADDED", "a", 7, 1, 10),
			rec(probe.FrameWritten, "w3", "ADDED", "a", 7, 80, 1),
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

// TestAQuietLaneIsShownAsALoudOne plays the same moments three times: once with every lane loud, and twice with lanes
// becoming loud and quiet on the way. At the end each lane must have the same waits for room in all pictures. A quiet
// lane's Fill must be the level of its longest queue. After a viewer has looked at a lane, its queues must be equal.
func TestAQuietLaneIsShownAsALoudOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		loud, quiet, looked := happened(seed, 0, false), happened(seed, 1, false), happened(seed, 1, true)
		for id, want := range loud.Subjects {
			longest := int64(0)
			for name, queue := range want.Queues {
				longest = max(longest, queue.Len)
				got := looked.Subjects[id].queue(name)
				require.True(t, got.Len == queue.Len && (got.Len <= 0 || got.Cap == queue.Cap),
					"%s of %s: got %+v, want %+v", name, id, got, queue)
			}
			fill := quiet.Subjects[id].Fill
			require.True(t, (fill == 0) == (id == "w1") && (fill == 0 || fill == 1+10*longest),
				"%s is %d full, with %d in a queue", id, fill, longest)
			for _, res := range []*Resource{quiet, looked} {
				require.Equal(t, len(loud.Waits["ResultBlocked "+id]), len(res.Waits["ResultBlocked "+id]), id)
			}
		}
	})
}

// happened returns the picture of three watchers after moments that the seed chooses. The limit is that of
// [probe.Log.LimitLoud]. At the end a viewer looks at each watcher and, unless looks is true, at w1 again after each.
func happened(seed uint64, limit int, looks bool) *Resource {
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
		w := &watcher{}
		lengths := func() (int, int, int) { return w.input, w.result, 10 }
		w.p = probe.New(log).Resource("pods").Lane(fmt.Sprint("w", i+1), lengths)
		w.p.At(probe.WatcherAdded, "", 1, 10)
		watchers = append(watchers, w)
	}
	for range 200 {
		w := watchers[random.IntN(len(watchers))]
		switch n := random.IntN(12); {
		case n == 0:
			log.LookAtCrowd()
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
			w.p.Event(probe.InputReceived, "ADDED", "default/a", 1, w.input, 10)
			w.result++
			w.blocked = false
			w.p.Event(probe.ResultSent, "ADDED", "default/a", 1, w.result, 10)
		case n >= 9 && w.result > 0:
			w.result--
			w.p.Event(probe.ResultReceived, "ADDED", "default/a", 1, w.result, 10)
		}
	}
	for _, w := range watchers {
		log.Look("pods", w.p.ID())
		if !looks {
			log.Look("pods", "w1") // LookAtCrowd now leaves only w1 loud
		}
	}
	log.LookAtCrowd()
	state := New()
	records, _ := log.Since(nil, 0, 1<<12)
	state.Apply(records)
	return state.Resources["pods"]
}

// TestACrowdThatIsNotKnown: a crowd's record sets Fill only if its number of watchers and its base64 are right.
func TestACrowdThatIsNotKnown(t *testing.T) {
	for _, test := range []struct {
		watchers int
		fill     string
		want     int64
	}{{2, "ATM=", 51}, {3, "ATM=", 0}, {2, "ATM", 0}, {2, "A_M=", 0}, {2, "Af8=", 101}, {2, "AQ==", 0}} {
		crowd := rec(probe.CrowdLookedAt, "", "", "", 0, test.watchers, 1)
		crowd.Texts = probe.NewTexts(map[string]string{"fill": test.fill})
		state := folded(in(rec(probe.WatcherAdded, "w10", "", "", 1, 10), rec(probe.WatcherAdded, "w9", "", "", 1, 10),
			crowd))
		assert.Equal(t, test.want, state.Resources["pods"].Subjects["w9"].Fill, "%+v", test)
	}
}

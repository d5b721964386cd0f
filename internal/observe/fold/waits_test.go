package fold

import (
	"testing"
	"time"

	"listwatch/internal/check/assert"
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
		On:   "input", Type: "ADDED", Key: "a", RV: 7,
	}}}
	assert.NoDiff(t, s.Resources["pods"].Waits, want, "waits")
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
			assert.NoDiff(t, waitsNow(test.records), want, "waits")
		})
	}
}

func TestAGapEndsWhatIsKnownOfWaits(t *testing.T) {
	records := in(
		rec(probe.IncomingBlocked, "cacher", "ADDED", "a", 7),
		rec(probe.RVAdvanced, "cacher", "", "", 8),
	)
	records[1].Seq += 10
	got := waitsNow(records)
	assert.Equal(t, len(got), 0, "waits after a gap: got %v, want none", got)
}

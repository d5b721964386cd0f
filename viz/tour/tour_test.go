package tour

import (
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

// TestTheTourIsToldFromARecording holds the tour to what the records of its take say.
func TestTheTourIsToldFromARecording(t *testing.T) {
	t.Parallel()
	take, ok := takes.Find(Take)
	require.True(t, ok, "there is no take %s", Take)
	_, records, err := take.Load()
	require.NoError(t, err)
	all, err := Recorded()
	require.NoError(t, err)
	at := func(seq uint64) probe.Record { return records[seq-records[0].Seq] }
	n := len(all.Steps)
	assert.True(t, n >= 8 && n <= 11, "%d steps, want eight to eleven", n)
	var rests []uint64
	for _, place := range all.Steps {
		rests = append(rests, place.Rest)
	}
	require.True(t, slices.IsSorted(rests) && rests[0] != 0, "the steps rest at %v", rests)
	for i, step := range Steps {
		told := all.Steps[i]
		t.Logf("%d %s: %s %s", rests[i], step.Title, told.Purpose, told.Happened)
		if strings.ContainsAny(told.Happened, "{}$") || strings.Contains(told.Happened, "nil") || told.Happened == "" {
			t.Errorf("%s: %q", step.Title, told.Happened)
		}
		// The one rests with the last change, the others when the log says whose the channel is.
		elsewhere := slices.Contains([]string{"your turn", "come back", "too late"}, step.Title)
		if r := at(rests[i]); !elsewhere && !slices.Contains(step.Look, string(r.Point.Info().Station)) {
			t.Errorf("%s rests at %s, which happens at none of %v", step.Title, r.Point, step.Look)
		}
	}
	changes, handled := 0, 0
	stalled := uint64(0)
	for _, r := range records {
		switch {
		case r.Point == probe.KnobTurned:
			stalled = r.Seq
		case stalled > 0 && r.Seq <= rests[6] && r.Point == probe.RingAppend:
			changes++
		case stalled > 0 && r.Seq <= rests[6] && r.Point == probe.IndexerUpdated && r.Subject == "informer":
			handled++
		}
	}
	act := all.Steps[6].Happened
	words := 0
	for i, step := range all.Steps {
		words += len(strings.Fields(step.Purpose + " " + step.Happened))
		if i == 6 {
			words += len(strings.Fields(step.Asks))
		}
	}
	t.Logf("the tour has %d words", words)
	assert.True(t, words <= 480, "the tour has %d words, want 480 at most", words)
	if changes != handled || changes == 0 ||
		!strings.Contains(act, "The informer has every change: nothing held it up.") {
		t.Errorf("%d changes and %d in the indexer, and the page says: %s", changes, handled, act)
	}
	assert.True(t, strings.Contains(act, "page-1 can take no more: its result holds 10 of 10"),
		"the result is not full: %s", act)
}

// What is not in the records yet is not told.
func TestATourIsToldAsFarAsItsRecordsGo(t *testing.T) {
	t.Parallel()
	take, _ := takes.Find(Take)
	start, records, err := take.Load()
	require.NoError(t, err)
	dispatched := slices.IndexFunc(records, func(r probe.Record) bool {
		return r.Point == probe.DispatchStarted && r.Key != "" // not a bookmark
	})
	told := Tour{Key: take.Key, Agent: "listwatch-page-1", Informer: "informer"}
	told.find(start, records[:dispatched+1], len(Steps))
	for i, place := range told.Steps {
		assert.Equal(t, place.Rest > 0, i < 4, "step %d rests at %d", i+1, place.Rest)
	}
}

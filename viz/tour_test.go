package viz

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/foldtest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
	"listwatch/viz/tour"
)

// toldTour is the tour as the page tells it from the take.
type toldTour struct {
	Rests []uint64
	Steps []struct {
		Title, Purpose, Happened, Asked string
		Look                            []string
	}
}

// tellTour lets the page tell the tour from records: each step at the picture in which it rests.
func tellTour(t *testing.T, records []probe.Record) (answer toldTour) {
	t.Helper()
	take, _ := takes.Find(tour.Take)
	start, _, err := take.Load()
	require.NoError(t, err)
	e := newEngine(t, map[string]string{"fold": "log/fold.js", "tour": "tour/steps.js"})
	log, _ := newLog()
	points := ask(New(Config{Log: log}), "GET", "/viz/points", "").Body.Bytes()
	text := run[string](t, e, `
		const fold = page.fold.newFold(JSON.parse(`+quote(t, points)+`));
		const state = page.fold.complete(JSON.parse(`+quote(t, start.Canonical())+`));
		const records = JSON.parse(`+quote(t, foldtest.Feed(records))+`);
		const reader = Object.entries(state.resources.pods.subjects)
			.find(([, s]) => s.kind === "watcher" && s.texts.WireOpened.includes("informer"))[0];
		const plot = page.tour.plotOf(records, { key: "default/my-pod", agent: "listwatch-page-1", reader });
		const rests = page.tour.restsOf(plot);
		const steps = page.tour.steps.map((step, i) => {
			if (!rests[i]) return { title: step.title, look: step.look };
			fold.apply(state, records.filter((r) => r.seq > state.seq && r.seq <= rests[i]));
			const [asked, purpose] = [step.purpose(plot, false), step.purpose(plot, true)];
			return { title: step.title, look: step.look, asked, purpose,
				happened: step.happened(plot, state.resources.pods, step.rest(plot)) };
		});
		JSON.stringify({ rests, steps })`)
	require.NoError(t, json.Unmarshal([]byte(text), &answer))
	return answer
}

// TestTheTourIsToldFromARecording holds the tour to what the records of its take say.
func TestTheTourIsToldFromARecording(t *testing.T) {
	t.Parallel()
	take, ok := takes.Find(tour.Take)
	require.True(t, ok, "there is no take %s", tour.Take)
	_, records, err := take.Load()
	require.NoError(t, err)
	at := func(seq uint64) probe.Record { return records[seq-records[0].Seq] }
	all := tellTour(t, records)
	n := len(all.Steps)
	assert.True(t, n >= 8 && n <= 10, "%d steps, want eight to ten", n)
	require.True(t, slices.IsSorted(all.Rests) && all.Rests[0] != 0, "the steps rest at %v", all.Rests)
	for i, step := range all.Steps {
		t.Logf("%d %s: %s %s", all.Rests[i], step.Title, step.Purpose, step.Happened)
		if strings.ContainsAny(step.Happened, "{}") || strings.Contains(step.Happened, "undefined") ||
			strings.Contains(step.Happened, "NaN") || step.Happened == "" {
			t.Errorf("%s: %q", step.Title, step.Happened)
		}
		if r := at(all.Rests[i]); step.Title != "your turn" && !slices.Contains(step.Look,
			string(r.Point.Info().Station)) {
			t.Errorf("%s rests at %s, which happens at none of %v", step.Title, r.Point, step.Look)
		}
	}
	changes, handled := 0, 0
	stalled := uint64(0)
	for _, r := range records {
		switch {
		case r.Point == probe.KnobTurned:
			stalled = r.Seq
		case stalled > 0 && r.Seq <= all.Rests[6] && r.Point == probe.RingAppend:
			changes++
		case stalled > 0 && r.Seq <= all.Rests[6] && r.Point == probe.IndexerUpdated && r.Subject == "informer":
			handled++
		}
	}
	act := all.Steps[6].Happened
	if back := all.Steps[7].Happened; !strings.Contains(back, fmt.Sprintf("the %d changes since", changes-1)) {
		t.Errorf("of %d changes one was read, and the page says: %s", changes, back)
	}
	words := 0
	for i, step := range all.Steps {
		words += len(strings.Fields(step.Purpose + " " + step.Happened))
		if i == 6 {
			words += len(strings.Fields(step.Asked))
		}
	}
	t.Logf("the tour has %d words", words)
	assert.True(t, words <= 480, "the tour has %d words, want 480 at most", words)
	if want := fmt.Sprintf("my-pod was changed %d times", changes); changes != handled || changes == 0 ||
		!strings.Contains(act, want) || !strings.Contains(act,
		fmt.Sprintf("The informer has all %d: nothing held it up.", handled)) {
		t.Errorf("%d changes and %d in the indexer, and the page says: %s", changes, handled, act)
	}
	assert.True(t, strings.Contains(act, "Its result holds 10 of 10"), "the result is not full: %s", act)
}

// What is not in the records yet is not told.
func TestATourIsToldAsFarAsItsRecordsGo(t *testing.T) {
	t.Parallel()
	take, _ := takes.Find(tour.Take)
	_, records, err := take.Load()
	require.NoError(t, err)
	dispatched := slices.IndexFunc(records, func(r probe.Record) bool { return r.Point == probe.DispatchStarted })
	for i, seq := range tellTour(t, records[:dispatched+1]).Rests {
		assert.Equal(t, i < 4, seq > 0, "step %d rests at %d", i+1, seq)
	}
}

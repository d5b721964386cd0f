package viz

import (
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

// TestWhatIsMarkedAsTheNextHopIsTaken looks in recordings of whole rounds for every hop that the page foretells: the
// same goroutine takes it, with the same object, and reports nothing of it in between.
func TestWhatIsMarkedAsTheNextHopIsTaken(t *testing.T) {
	t.Parallel()
	after := run[map[string]string](t, newEngine(t, map[string]string{"targets": "stage/targets.js"}),
		"page.targets.after")
	require.True(t, len(after) >= 8, "the page foretells %v", after)
	taken := map[string]int{}
	for _, name := range []string{"life", "tour", "busy"} {
		take, _ := takes.Find(name)
		_, records, err := take.Load()
		require.NoError(t, err)
		for i, r := range records {
			if next := after[r.Point.String()]; next != "" && nextOf(r, records[i+1:]).String() == next {
				taken[r.Point.String()]++
			}
		}
	}
	for point, next := range after {
		assert.True(t, taken[point] != 0, "after %s the page marks %s, and no recording shows it", point, next)
	}
}

// nextOf returns the point that the goroutine of a record reports next of the same object; of a request, which names
// none, the next commit.
func nextOf(r probe.Record, rest []probe.Record) (next probe.Point) {
	lane := r.Point.Info().Lane
	for _, n := range rest {
		sameObject := r.Key == "" || probe.ObjectKey(n.Key) == probe.ObjectKey(r.Key)
		if r.Point == probe.RequestReceived {
			sameObject = n.Point == probe.TxnCommitted
		}
		sameGoroutine := lane == "" || n.Point.Info().Lane == "" || n.Point.Info().Lane == lane
		if sameObject && sameGoroutine && n.Subject == r.Subject && n.Point != r.Point {
			return n.Point
		}
	}
	return 0
}

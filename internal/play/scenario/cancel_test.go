package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// full selects the long form of tests: `make full`.
var full = os.Getenv("FULL") != ""

// TestAStoryThatIsCancelledLeavesNothing cancels each story at every other beat and at one random record; in the long
// form, at every beat and at twenty random records. Until then, the gate lets goroutines pass one point at a time:
// the story is cancelled in the middle of its work.
func TestAStoryThatIsCancelledLeavesNothing(t *testing.T) {
	for _, each := range All {
		t.Run(each.ID, func(t *testing.T) {
			var whole Seen
			var start uint64 // number of the last record before the story's first
			inEnv(t, each.Alone != "", func(t *testing.T, w *Env) {
				start = w.Log.Last()
				whole = require.Value(w.Play(t.Context(), each.ID))(t)
			})
			for _, after := range moments(whole, start) {
				inEnv(t, each.Alone != "", func(t *testing.T, w *Env) { w.cancelAfter(t, each.ID, after) })
			}
		})
	}
}

// moments returns the numbers of records after which to cancel a story that was played once to its end.
func moments(whole Seen, start uint64) (after []uint64) {
	for i, beat := range whole.Beats {
		if full || i%2 == 0 {
			after = append(after, beat.To-start)
		}
	}
	n := 1
	if full {
		n = 20
	}
	random := rand.New(rand.NewPCG(uint64(len(whole.ID)), 14))
	for range n {
		after = append(after, random.Uint64N(whole.To-start))
	}
	return after
}

// cancelAfter plays a story, cancels its request after some records, and checks that the story ends and leaves nothing
// behind. A story's own world ends with the story: a leftover goroutine would keep the bubble from ending.
func (w *Env) cancelAfter(t *testing.T, id string, after uint64) {
	t.Helper()
	before, gate := fmt.Sprintf("%+v", w.standing()), w.Log.Gate()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	played := make(chan struct{})
	from := w.Log.Last()
	gate.Hold()
	go func() {
		_, _ = w.Play(ctx, id)
		close(played)
	}()
	over := false
	for !over && w.Log.Last() < from+after {
		synctest.Wait()
		if gate.Step(probe.Query{}) == 0 {
			time.Sleep(time.Millisecond)
		}
		select {
		case <-played:
			over = true
		default:
		}
	}
	leave()
	gate.Release()
	if !over {
		<-played
	}
	if w.Operator != nil {
		return
	}
	time.Sleep(3 * time.Minute) // long enough for clients that were cut off to reconnect
	synctest.Wait()
	assert.Equal(t, before, fmt.Sprintf("%+v", w.standing()), "cancelled after %d records", after)
}

// standing returns the state that a story must leave as it was.
func (w *Env) standing() any {
	state := w.Sandbox.Knobs()
	state.Traffic.Written = 0
	for i := range state.Rings {
		state.Rings[i].Capacity = 0 // the capacity changes by itself
	}
	watchers := map[string]int{}
	for _, each := range w.Pipeline.Server.Cachers() {
		watchers[each.Resource()] = len(each.Snapshot().Watchers)
	}
	objects := w.Pipeline.Snapshot().Client.Informer.Indexer.Objects
	return []any{state, w.Sandbox.Watchers(), objects, watchers}
}

// TestAStoryThatNeedsAWorldOfItsOwnLeavesTheRunningOneAlone checks that without an Operator such a story does nothing,
// and that its outcome gives the reason.
func TestAStoryThatNeedsAWorldOfItsOwnLeavesTheRunningOneAlone(t *testing.T) {
	inEnv(t, false, func(t *testing.T, w *Env) {
		for _, each := range All {
			if each.Alone == "" {
				continue
			}
			before := w.Log.Last()
			seen, err := w.Play(t.Context(), each.ID)
			assert.True(t, err == nil && seen.Untold != "" &&
				!slices.ContainsFunc(seen.Beats, func(r Range) bool { return r.To > 0 }) && seen.To == before &&
				w.Log.Last() == before, "%s: got %+v, %v, and %d new records", each.ID, seen, err, w.Log.Last()-before)
		}
	})
}

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

// full is set for the heavy form of tests: `make full`.
var full = os.Getenv("FULL") != ""

// TestAStoryThatIsCancelledLeavesNothing cancels each story at every other one of its beats and at a chance record, in
// the heavy form at all of its beats and at twenty chance records.
// The world goes hop by hop until then, so that the story is met in the middle of what it does.
func TestAStoryThatIsCancelledLeavesNothing(t *testing.T) {
	for _, each := range All {
		t.Run(each.ID, func(t *testing.T) {
			var whole Seen
			var start uint64 // the story's records are those after it, told or not
			inEnv(t, each.Alone != "", func(t *testing.T, w *Env) {
				var err error
				start = w.Log.Last()
				whole, err = w.Play(t.Context(), each.ID)
				require.NoError(t, err)
			})
			for _, after := range moments(whole, start) {
				inEnv(t, each.Alone != "", func(t *testing.T, w *Env) { w.cancelAfter(t, each.ID, after) })
			}
		})
	}
}

// moments returns after how many records to cancel a story that was seen as a whole.
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

// cancelAfter plays a story, lets its request go after so many records, and holds that it ends, and that nothing of it
// is left. A world of the story's own ends with it: goroutines that stayed would keep the bubble from ending.
func (w *Env) cancelAfter(t *testing.T, id string, after uint64) {
	t.Helper()
	before, gate := fmt.Sprintf("%+v", w.standing()), w.Log.Gate()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	played := make(chan error, 1)
	from := w.Log.Last()
	gate.Hold()
	go func() {
		_, err := w.Play(ctx, id)
		played <- err
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
	time.Sleep(3 * time.Minute) // what was cut off comes back
	synctest.Wait()
	assert.Equal(t, before, fmt.Sprintf("%+v", w.standing()), "cancelled after %d records", after)
}

// standing is everything that a story may change.
func (w *Env) standing() any {
	state := w.Sandbox.Knobs()
	state.Traffic.Written = 0
	for i := range state.Rings {
		state.Rings[i].Capacity = 0 // it grows and shrinks by itself
	}
	watchers := map[string]int{}
	for _, each := range w.Pipeline.Server.Cachers() {
		watchers[each.Resource()] = len(each.Snapshot().Watchers)
	}
	leases := w.Pipeline.Client.NewClient("test", nil).WithAPIPath("/apis/coordination.k8s.io/v1")
	lease := leases.Get().Namespace(namespace).Resource("leases").Name("one-leader").Do(context.Background())
	objects := w.Pipeline.Snapshot().Client.Informer.Indexer.Objects
	return []any{state, lease.StatusCode(), w.Sandbox.Watchers(), objects, watchers}
}

// TestAStoryThatNeedsAWorldOfItsOwnLeavesTheRunningOneAlone holds that such a story does nothing where it has no
// machine, and says so.
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

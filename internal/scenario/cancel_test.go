package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"listwatch/internal/probe"
)

// full is set for the heavy form of tests: `make full`.
var full = os.Getenv("FULL") != ""

// TestAStoryThatIsCancelledLeavesNothing cancels each story at each of its beats and at chance records, in the heavy form at each
// of its steps, too.
// The world goes hop by hop until then, so that the story is met in the middle of what it does.
func TestAStoryThatIsCancelledLeavesNothing(t *testing.T) {
	for _, each := range All {
		t.Run(each.ID, func(t *testing.T) {
			var whole Seen
			inWorld(t, func(t *testing.T, w *World) {
				var err error
				if whole, err = w.Play(t.Context(), each.ID); err != nil {
					t.Fatal(err)
				}
			})
			for _, after := range moments(whole) {
				inWorld(t, func(t *testing.T, w *World) { w.cancelAfter(t, each.ID, after) })
			}
		})
	}
}

// moments returns after how many records to cancel a story that was seen as a whole.
func moments(whole Seen) (after []uint64) {
	for _, beat := range whole.Beats {
		after = append(after, beat.To-whole.From)
	}
	n := 2
	if full {
		n = 20
		for _, step := range whole.Steps {
			after = append(after, step.Seq-whole.From)
		}
	}
	random := rand.New(rand.NewPCG(uint64(len(whole.ID)), 14))
	for range n {
		after = append(after, random.Uint64N(whole.To-whole.From))
	}
	return after
}

// cancelAfter plays a story, lets its request go after so many records, and holds that nothing of it is left.
func (w *World) cancelAfter(t *testing.T, id string, after uint64) {
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
		if gate.Step(probe.Hop{}) == 0 {
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
	time.Sleep(3 * time.Minute) // what was cut off comes back
	synctest.Wait()
	if now := fmt.Sprintf("%+v", w.standing()); now != before {
		t.Errorf("cancelled after %d records:\n%s\nbefore\n%s", after, now, before)
	}
}

// standing is everything that a story may change.
func (w *World) standing() any {
	state := w.Sandbox.Knobs()
	state.Traffic.Written = 0
	for i := range state.Rings {
		state.Rings[i].Capacity = 0 // it grows and shrinks by itself
	}
	watchers := map[string]int{}
	for _, each := range w.Pipeline.Server.Cachers() {
		watchers[each.Resource()] = len(each.Snapshot().Watchers)
	}
	return []any{state, w.Sandbox.Watchers(), w.Pipeline.Snapshot().Client.Informer.Indexer.Objects, watchers}
}

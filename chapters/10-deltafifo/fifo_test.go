package deltafifo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

var must = require.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The table of the README: what a consumer sees of what happened while it was busy.
func TestWhatIsSeenOfWhatHappenedWhileBusy(t *testing.T) {
	for _, tc := range []struct {
		name        string
		known       []string // in the consumer's store, at rv 1
		script      func(q Queue)
		delta, real []string
	}{
		{"create a, create b, update a", nil,
			func(q Queue) { must(q.Add(pod("a", 2))); must(q.Add(pod("b", 3))); must(q.Update(pod("a", 4))) },
			[]string{"Added a@2", "Updated a@4", "Added b@3"}, []string{"Added a@2", "Added b@3", "Updated a@4"}},
		{"create and delete a", nil, func(q Queue) { must(q.Add(pod("a", 2))); must(q.Delete(pod("a", 3))) },
			[]string{"Added a@2", "Deleted a@3"}, []string{"Added a@2", "Deleted a@3"}},
		{"delete and recreate a", []string{"a"},
			func(q Queue) { must(q.Delete(pod("a", 2))); must(q.Add(pod("b", 3))); must(q.Add(pod("a", 4))) },
			[]string{"Deleted a@2", "Added a@4", "Added b@3"}, []string{"Deleted a@2", "Added b@3", "Added a@4"}},
		{"relist without a, which is known", []string{"a", "b"},
			func(q Queue) { must(q.Replace([]any{pod("b", 1), pod("c", 2)}, "3")) },
			[]string{"Replaced b@1", "Replaced c@2", "Deleted a@1?"}, []string{"ReplacedAll @3 [b@1 c@2]"}},
		{"relist without a, which is queued", nil,
			func(q Queue) { must(q.Add(pod("a", 2))); must(q.Replace([]any{pod("b", 3)}, "3")) },
			[]string{"Added a@2", "Deleted a@2?", "Replaced b@3"}, []string{"Added a@2", "ReplacedAll @3 [b@3]"}},
		{"relist without a, which is queued twice", nil,
			func(q Queue) { must(q.Add(pod("a", 2))); must(q.Update(pod("a", 3))); must(q.Replace(nil, "3")) },
			[]string{"Added a@2", "Updated a@3", "Deleted a@3?"},
			[]string{"Added a@2", "Updated a@3", "ReplacedAll @3 []"}},
		{"relist without a, whose deletion is queued", []string{"a"},
			func(q Queue) { must(q.Delete(pod("a", 2))); must(q.Replace(nil, "3")) },
			[]string{"Deleted a@2"}, []string{"Deleted a@2", "ReplacedAll @3 []"}},
		{"resync with a queued", []string{"a", "b"}, func(q Queue) { must(q.Update(pod("a", 2))); must(q.Resync()) },
			[]string{"Updated a@2", "Sync b@1"}, []string{"Updated a@2", "SyncAll"}},
		{"two deletions of a", []string{"a"},
			func(q Queue) { must(q.Delete(pod("a", 2))); must(q.Delete(pod("a", 3))) },
			[]string{"Deleted a@2"}, []string{"Deleted a@2", "Deleted a@3"}},
		{"a concluded deletion, then the real one", []string{"a"}, func(q Queue) {
			must(q.Delete(DeletedFinalStateUnknown{"default/a", pod("a", 1)}))
			must(q.Delete(pod("a", 3)))
		}, []string{"Deleted a@3"}, []string{"Deleted a@1?", "Deleted a@3"}},
		{"deletion of an unknown object", nil, func(q Queue) { must(q.Delete(pod("a", 2))) },
			nil, []string{"Deleted a@2"}},
	} {
		for _, s := range setups {
			t.Run(tc.name+"/"+s.name, func(t *testing.T) {
				want := tc.delta
				if s.real {
					want = tc.real
				}
				c := newConsumer(tc.known...)
				q := s.make(c)
				tc.script(q)
				assert.Equal(t, len(want), q.Snapshot().Len, "deltas wait")
				drain(q, c, true)
				assert.NoDiff(t, want, c.take())
			})
		}
	}
}

func TestOnePopOfADeltaFIFOTakesAllOfOneKey(t *testing.T) {
	c := newConsumer()
	q := setups[0].make(c)
	must(q.Add(pod("a", 1)))
	must(q.Add(pod("b", 2)))
	must(q.Delete(pod("a", 3)))
	must(q.Pop(c.process))
	assert.Equal(t, "", cmp.Diff([]string{"Added a@1", "Deleted a@3"}, c.take()))
	must(q.Add(pod("a", 4))) // behind b, and without what was taken
	drain(q, c, false)
	assert.Equal(t, "", cmp.Diff([]string{"Added b@2", "Added a@4"}, c.take()))
}

func TestSyncedWhenTheFirstListHasBeenProcessed(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			c := newConsumer()
			q := s.make(c)
			must(q.Replace([]any{pod("a", 1), pod("b", 2)}, "2"))
			must(q.Add(pod("c", 3)))
			processing := func(deltas Deltas, isInInitialList bool) error {
				for _, delta := range deltas {
					late := delta.Key == "default/c"
					assert.True(t, q.HasSynced() == late && isInInitialList != late,
						"while %s is processed: synced %v, in initial list %v", describe(delta), q.HasSynced(),
						isInInitialList)
				}
				return c.process(deltas, isInInitialList)
			}
			for q.Snapshot().Len > 1 {
				require.True(t, !q.HasSynced(), "synced with %d waiting", q.Snapshot().Len)
				must(q.Pop(processing))
			}
			assert.True(t, q.HasSynced() && IsDone(q.HasSyncedChecker()), "not synced after the first list")
			must(q.Pop(processing))
		})
	}
}

func TestSyncedAfterAnEmptyList(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			c := newConsumer()
			q := s.make(c)
			must(q.Replace(nil, "1"))
			// One delta stands for the whole list, and has to be processed even if the list is empty.
			assert.True(t, q.HasSynced() != s.real, "synced %v before anything was processed", q.HasSynced())
			drain(q, c, true)
			assert.True(t, q.HasSynced(), "not synced")
		})
	}
}

// A first list may come while something older is still being processed.
func TestWhatWasTakenBeforeTheFirstListIsNoPartOfIt(t *testing.T) {
	q := newReal()
	must(q.Bookmark("1"))
	require.NoError(t, q.Pop(func(Deltas, bool) error { return q.Replace([]any{pod("a", 2)}, "2") }))
	assert.False(t, q.HasSynced(), "synced while the first list waits")
	must(q.Pop(newConsumer().process))
	assert.True(t, q.HasSynced(), "not synced after the first list was processed")
}

func TestSyncedWhenWhatWaitedBeforeTheFirstListAndTheListAreProcessed(t *testing.T) {
	q := newReal()
	must(q.Bookmark("1"))
	must(q.Replace([]any{pod("a", 2)}, "2"))
	for range 2 {
		assert.False(t, q.HasSynced(), "synced with %d waiting", q.Snapshot().Len)
		must(q.Pop(newConsumer().process))
	}
	assert.True(t, q.HasSynced(), "not synced after the first list was processed")
}

func TestSyncedAtOnceIfThereIsNoFirstList(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			q := s.make(newConsumer())
			assert.False(t, q.HasSynced(), "synced before anything")
			must(q.Add(pod("a", 1)))
			assert.True(t, q.HasSynced(), "not synced after Add")
			must(q.Replace([]any{pod("a", 1)}, "1"))
			assert.True(t, q.HasSynced(), "not synced any more after a later list")
		})
	}
}

func TestPopWaitsAndReturnsWhatProcessReturns(t *testing.T) {
	for _, s := range setups {
		bubble.Run(t, s.name, func(t *testing.T) {
			q := s.make(newConsumer())
			boom := errors.New("boom")
			popped := make(chan error, 1)
			consume(t, func() { popped <- q.Pop(func(Deltas, bool) error { return boom }) })
			synctest.Wait()
			select {
			case err := <-popped:
				t.Fatalf("Pop of an empty queue returned %v", err)
			default:
			}
			must(q.Add(pod("a", 1)))
			assert.Equal(t, boom, <-popped)
			assert.Equal(t, 0, q.Snapshot().Len, "wait: what failed is not put back")
			q.Close()
			must(q.Add(pod("b", 2))) // writers are not refused
			must(q.Pop(newConsumer().process))
			assert.Equal(t, ErrFIFOClosed, q.Pop(newConsumer().process))
		})
	}
}

// consume calls pop in a goroutine of the name that the consumer has in an informer.
func consume(t *testing.T, pop func()) {
	new(routine.Group).Go(t.Context(), "informer.Run", func(context.Context) { pop() })
}

// This runs outside a bubble, which does not count a goroutine at a sync.Mutex as blocked, and looks at the lock.
func TestWritersAreLetInDuringProcessingWhileFewerThanTwoBatchesWait(t *testing.T) {
	for _, tc := range []struct {
		waiting int
		letIn   bool
	}{{0, true}, {2*defaultBatchSize - 1, true}, {2 * defaultBatchSize, false}} {
		t.Run(fmt.Sprint(tc.waiting), func(t *testing.T) {
			q := newReal()
			for i := range tc.waiting + 1 {
				must(q.Add(pod(fmt.Sprint(i), i+1)))
			}
			err := q.Pop(func(Deltas, bool) error {
				letIn := q.mu.TryLock()
				if letIn {
					q.mu.Unlock()
				}
				assert.Equal(t, tc.letIn, letIn, "with %d waiting: writers are let in", tc.waiting)
				return nil
			})
			require.NoError(t, err)
		})
	}
}

func TestBatches(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script func(q *RealFIFO)
		want   []int // deltas per PopBatch
	}{
		{"different keys go together", func(q *RealFIFO) {
			must(q.Add(pod("a", 1)))
			must(q.Update(pod("b", 2)))
			must(q.Delete(pod("c", 3)))
		}, []int{3}},
		{"a second delta of a key begins a new batch", func(q *RealFIFO) {
			must(q.Add(pod("a", 1)))
			must(q.Add(pod("b", 2)))
			must(q.Update(pod("a", 3)))
		}, []int{2, 1}},
		{"a bookmark is alone", func(q *RealFIFO) {
			must(q.Add(pod("a", 1)))
			must(q.Bookmark("2"))
			must(q.Add(pod("b", 3)))
			must(q.Add(pod("c", 3)))
		}, []int{1, 1, 2}},
		{"a list is alone",
			func(q *RealFIFO) { must(q.Replace(nil, "1")); must(q.Add(pod("a", 2))); must(q.Add(pod("b", 3))) },
			[]int{1, 2}},
		{"a batch has at most 1000", func(q *RealFIFO) {
			for i := range 2001 {
				must(q.Add(pod(fmt.Sprint(i), i+1)))
			}
		}, []int{1000, 1000, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := newReal()
			tc.script(q)
			var got []int
			note := func(deltas Deltas, _ bool) error { got = append(got, len(deltas)); return nil }
			for q.Snapshot().Len > 0 {
				must(q.PopBatch(note, note))
			}
			assert.Equal(t, "", cmp.Diff(tc.want, got))
		})
	}
}

func TestTheArrayLetsGoOfWhatWasTaken(t *testing.T) {
	q := newReal()
	must(q.Add(pod("a", 1)))
	must(q.Add(pod("b", 2)))
	slots := q.items
	must(q.Pop(newConsumer().process))
	assert.True(t, slots[0] == (Delta{}) && slots[1] != (Delta{}), "the slots hold %v, want only b", slots)
}

func TestAnObjectWithoutKeyIsRefused(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			q := s.make(newConsumer())
			for name, err := range map[string]error{"Add": q.Add(3), "Update": q.Update(3), "Delete": q.Delete(3)} {
				assert.True(t, strings.HasPrefix(fmt.Sprint(err), "key of int"), "%s: got %v", name, err)
			}
			assert.True(t, s.real || q.Replace([]any{3}, "1") != nil, "Replace: want an error")
			assert.Equal(t, 0, q.Snapshot().Len, "wait")
		})
	}
}

func TestProbesTellWhatWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 0)
		probetest.Story(t, log)
		p := probe.New(log).Resource("pods").Subject("informer")
		real := NewRealFIFO(nil, p)
		c := newConsumer()
		must(real.Replace([]any{pod("a", 1)}, "7"))
		must(real.Update(pod("a", 8)))
		must(real.Bookmark("9"))
		drain(real, c, true)
		delta := NewDeltaFIFO(nil, nil, p)
		must(delta.Add(pod("b", 1)))
		must(delta.Delete(pod("b", 2)))
		must(delta.Delete(pod("b", 3))) // merged: still two wait
		drain(delta, c, true)

		var got []string
		for _, r := range probetest.Records(log) {
			got = append(got, fmt.Sprintf("%s %s %q %d len=%d", r.Point, r.Type, r.Key, r.RV, r.Args[0]))
		}
		want := []string{
			`FIFOAdded ReplacedAll "" 7 len=1`, `FIFOAdded Updated "default/a" 8 len=2`,
			`FIFOAdded Bookmark "" 9 len=3`, `FIFOPopped ReplacedAll "" 7 len=2`,
			`FIFOPopped Updated "default/a" 8 len=1`, `FIFOPopped Bookmark "" 9 len=0`,
			`FIFOAdded Added "default/b" 1 len=1`, `FIFOAdded Deleted "default/b" 2 len=2`,
			`FIFOAdded Deleted "default/b" 3 len=2`, `FIFOPopped Added "default/b" 1 len=1`,
			`FIFOPopped Deleted "default/b" 2 len=0`,
		}
		assert.NoDiff(t, want, got)
	})
}

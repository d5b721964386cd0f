package deltafifo

import (
	"fmt"
	"strings"
	"testing"

	"listwatch/internal/check/chapterdrawing"
	"listwatch/internal/check/require"
)

// The drawing of the batches: one queue with everything that ends a batch, and where PopBatch cuts it.
func TestTheDrawingOfTheBatchesIsOfThisQueue(t *testing.T) {
	q := newReal()
	must(q.Replace(nil, "1"))
	ignore := func(Deltas, bool) error { return nil }
	must(q.Pop(ignore)) // the first list is through

	for _, name := range []string{"a", "b", "c"} {
		must(q.Add(pod(name, 2)))
	}
	must(q.Update(pod("a", 3)))
	must(q.Add(pod("d", 4)))
	must(q.Replace([]any{pod("a", 3)}, "5"))
	must(q.Update(pod("e", 6)))
	must(q.Resync())
	for i := range 1200 {
		must(q.Add(pod(fmt.Sprintf("p%04d", i), 7)))
	}

	d := chapterdrawing.New("batches.svg", 204)
	x, n := 16, 0
	cell := func(text string) {
		width := 14 + 8*len(text)
		d.In("queue", func() { d.Box(x, 46, width, 34, "wall") })
		d.Text(x+width/2, 68, "mid", "%s", text)
		x += width
	}
	batch := func(deltas Deltas, _ bool) error {
		n++
		from := x
		last := strings.TrimPrefix(deltas[len(deltas)-1].Key, "default/")
		for _, delta := range deltas {
			text := strings.TrimPrefix(delta.Key, "default/")
			if text == "" {
				text = string(delta.Type)
			}
			if len(deltas) > 10 {
				cell(text + " … " + last)
				break
			}
			cell(text)
		}
		d.Path("way", "M%d 90v8H%dv-8", from+4, x-4)
		d.Text((from+x)/2, 118, "mid bold", "%d", n)
		d.Text((from+x)/2, 138, "mid soft", "%d", len(deltas))
		return nil
	}
	for q.Snapshot().Len > 0 {
		must(q.PopBatch(batch, batch))
	}
	d.Text(16, 26, "", "A queue, the oldest delta on the left; its batches, and how many deltas each has")
	d.Text(16, 170, "", "2 begins at the second delta of a. 3 and 5 concern no single key.")
	d.Text(16, 192, "", "6 ends because a batch has %d deltas at most.", defaultBatchSize)
	d.Check(t)
}

// spied is a consumer's store that notes whether the queue is locked while it is read.
type spied struct {
	*consumer
	queue  *commonFIFO
	locked bool
	read   bool
}

func (s *spied) ListKeys() []string {
	s.read, s.locked = true, isLocked(s.queue)
	return s.consumer.ListKeys()
}

// isLocked is for a test with one goroutine: if it cannot have the lock, it holds it.
func isLocked(f *commonFIFO) bool {
	if f.mu.TryLock() {
		f.mu.Unlock()
		return false
	}
	return true
}

// The drawing of a relist: what each queue makes of a list, who reads the store, and when the queue is locked.
func TestTheDrawingOfARelistIsOfTheseQueues(t *testing.T) {
	d := chapterdrawing.New("relist.svg", 354)
	d.Text(16, 22, "soft", "The store has a, b and c; the list has a, c and d. Who compares, under which lock?")
	for i, real := range []bool{false, true} {
		store := &spied{consumer: newConsumer("a", "b", "c")}
		var q Queue
		if real {
			f := newReal()
			q, store.queue = f, &f.commonFIFO
		} else {
			f := NewDeltaFIFO(store, nil, nil)
			q, store.queue = f, &f.commonFIFO
		}
		require.NoError(t, q.Replace([]any{pod("a", 2), pod("c", 2), pod("d", 2)}, "2"))
		require.True(t, store.read != real, "%T reads the store in Replace: %t", q, store.read)
		var queued []string
		for q.Snapshot().Len > 0 {
			must(q.Pop(func(deltas Deltas, _ bool) error {
				require.True(t, isLocked(store.queue) != real, "%T is locked: %t", q, real)
				for _, delta := range deltas {
					if delta.Type == ReplacedAll {
						store.ListKeys() // as the informer does, which compares
					}
					what := strings.NewReplacer(" @2", "", "@2", "", "@1?", " (a tombstone)").Replace(describe(delta))
					queued = append(queued, what)
				}
				return nil
			}))
		}
		require.True(t, store.locked != real, "%T is locked while the store is read: %t", q, store.locked)

		y := 56 + i*150
		says, ready, begins, ends := "Replace compares", 110, 330, 530
		if real {
			says, ready, begins, ends = "Replace appends", 40, 210, 530
		}
		d.Text(16, y, "bold", "%s", map[string]string{"delta": "DeltaFIFO", "real": "RealFIFO"}[q.Snapshot().Kind])
		d.Text(110, y, "soft", "queues %s", strings.Join(queued, ", "))
		d.Text(16, y+44, "", "reflector")
		d.Text(16, y+94, "", "consumer")
		d.Path("way", "M96 %dH628M96 %dH628", y+50, y+100)
		d.Box(110, y+44, ready, 12, "fill")
		d.Text(110, y+38, "", "%s, locked", says)
		d.In("acts", func() { d.Path("fill", "M400 %dl-6 -11h12z", y+50) })
		if real {
			d.In("acts", func() { d.Box(begins, y+94, ends-begins, 12, "fill") })
			d.Text(begins, y+88, "", "compares and applies, not locked")
			d.Text(412, y+38, "", "a change: appended at once")
			d.Text(16, y+132, "", "If %d deltas or more wait, a RealFIFO stays locked, too.", 2*defaultBatchSize)
		} else {
			d.Box(begins, y+94, ends-begins, 12, "fill")
			d.Text(begins, y+88, "", "applies, locked")
			d.In("queue", func() { d.Box(400, y+44, ends-400, 12, "fill") })
			d.Text(412, y+38, "", "a change: waits until the end")
		}
	}
	d.Check(t)
}

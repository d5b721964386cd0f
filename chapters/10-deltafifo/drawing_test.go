package deltafifo

import (
	"fmt"
	"strings"
	"testing"

	"listwatch/internal/check/drawing"
	"listwatch/internal/check/require"
)

// The drawing of the batches: one queue with everything that ends a batch, and where PopBatch cuts it.
func TestTheDrawingOfTheBatchesIsOfThisQueue(t *testing.T) {
	q := newReal()
	q.Replace(nil, "1")
	ignore := func(Deltas, bool) error { return nil }
	q.Pop(ignore) // the first list is through

	for _, name := range []string{"a", "b", "c"} {
		q.Add(pod(name, 2))
	}
	q.Update(pod("a", 3))
	q.Add(pod("d", 4))
	q.Replace([]any{pod("a", 3)}, "5")
	q.Update(pod("e", 6))
	q.Resync()
	for i := range 1200 {
		q.Add(pod(fmt.Sprintf("p%04d", i), 7))
	}

	d := drawing.New("batches.svg", 176)
	x, n := 16, 0
	cell := func(width int, text string) {
		d.In("queue", func() { d.Box(x, 52, width, 34, "wall") })
		d.Text(x+width/2, 74, "mid", "%s", text)
		x += width
	}
	batch := func(deltas Deltas, _ bool) error {
		n++
		from := x
		if len(deltas) > 10 {
			cell(max(len(deltas)/8, 84), fmt.Sprintf("%d pods", len(deltas)))
		} else {
			for _, delta := range deltas {
				text := strings.TrimPrefix(delta.Key, "default/")
				if text == "" {
					text = string(delta.Type)
				}
				cell(18+8*len(text), text)
			}
		}
		d.Path("way", "M%d 100v8H%dv-8", from+2, x-2)
		d.Text((from+x)/2, 128, "mid bold", "%d", n)
		x += 14
		return nil
	}
	for q.Snapshot().Len > 0 {
		q.PopBatch(batch, batch)
	}
	d.Text(16, 26, "", "What waits, the oldest on the left, and the batches in which it is taken:")
	d.Text(16, 158, "soft", "2 begins at the second delta of a; 3 and 5 concern no single key; 6 is full.")
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

// The drawing of a relist: what each queue makes of the same list, who reads the consumer's store, and when the queue
// is locked.
func TestTheDrawingOfARelistIsOfTheseQueues(t *testing.T) {
	d := drawing.New("relist.svg", 394)
	for i, real := range []bool{false, true} {
		store := &spied{consumer: newConsumer("a", "b", "c")}
		var q Queue
		if real {
			f := newReal()
			q, store.queue = f, &f.commonFIFO
		} else {
			f := NewDeltaFIFO(DeltaFIFOOptions{KnownObjects: store})
			q, store.queue = f, &f.commonFIFO
		}
		require.NoError(t, q.Replace([]any{pod("a", 2), pod("b", 2), pod("d", 2)}, "2"))
		compared := store.read && store.locked
		var queued []string
		var processing bool
		for q.Snapshot().Len > 0 {
			q.Pop(func(deltas Deltas, _ bool) error {
				processing = isLocked(store.queue)
				for _, delta := range deltas {
					queued = append(queued, describe(delta))
				}
				return nil
			})
		}

		y := 26 + i*196
		d.Text(16, y, "bold", "%s", map[string]string{"delta": "DeltaFIFO", "real": "RealFIFO"}[q.Snapshot().Kind])
		d.Text(16, y+44, "", "reflector")
		d.Text(16, y+94, "", "consumer")
		d.Path("way", "M96 %dH704M96 %dH704", y+50, y+100)
		work := func(x, y, width int, locked bool, text string) {
			if locked {
				d.Box(x, y, width, 12, "full")
				text += ", the queue locked"
			} else {
				d.In("acts", func() { d.Box(x, y, width, 12, "fill") })
				text += ", the queue open"
			}
			d.Text(x, y-6, "", "%s", text)
		}
		if compared {
			work(110, y+44, 210, true, "Replace reads the store")
			work(400, y+94, 210, processing, "applies what it is told")
		} else {
			work(110, y+44, 40, true, "Replace appends")
			work(330, y+94, 250, processing, "reads and writes the store")
		}
		d.Text(16, y+136, "soft", "queued: %s", strings.Join(queued, ", "))
		blocked := "A change that comes now waits until the consumer is done."
		if !processing {
			blocked = "A change that comes now is appended at once."
		}
		d.Text(16, y+160, "", "%s", blocked)
	}
	d.Check(t)
}

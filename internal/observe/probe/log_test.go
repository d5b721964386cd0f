package probe

import (
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// tail reads a log to its end while others write, and returns the records it saw: in order, with gaps where it was
// overrun.
func tail(t *testing.T, log *Log, done *atomic.Bool) map[uint64]Record {
	seen := map[uint64]Record{}
	var seq uint64
	var last Record
	for batch := []Record(nil); ; {
		ended := done.Load()
		var ok bool
		batch, ok = log.Since(batch[:0], seq, 100)
		if !ok {
			seq = max(seq, log.Oldest()-1)
			continue
		}
		for _, r := range batch {
			if seq++; r.Seq != seq {
				t.Errorf("after %d the log shows %d", seq-1, r.Seq)
				return seen
			}
			if r.Time < last.Time {
				t.Errorf("record %d was made %v before record %d", r.Seq, last.Time-r.Time, last.Seq)
			}
			seen[r.Seq], last = r, r
		}
		if ended && len(batch) == 0 {
			return seen
		}
	}
}

// TestReadersSeeTheSameLogWhileItIsWritten overruns small logs with many writers, so that blocks are used again and
// again.
func TestReadersSeeTheSameLogWhileItIsWritten(t *testing.T) {
	const writers, each = 4, 20000
	log := NewLog(clock.RealClock{}, 2000)
	var writing, reading sync.WaitGroup
	var done atomic.Bool
	seen := make([]map[uint64]Record, 2)
	for i := range seen {
		reading.Go(func() { seen[i] = tail(t, log, &done) })
	}
	for range writers {
		p := New(log).Subject("w")
		writing.Go(func() {
			for n := range each {
				p.Event(InputSent, "ADDED", "default/a", uint64(n), n, n)
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	for seq, r := range seen[0] {
		require.True(t, r.Args[0] == int(r.RV) && r.Args[1] == int(r.RV) && r.Subject == "w" && r.Point == InputSent,
			"record %d is a mixture of two: %+v", seq, r)
		if other, ok := seen[1][seq]; ok && other != r {
			t.Fatalf("one reader sees %+v, the other %+v", r, other)
		}
	}
	if last := log.Last(); last != writers*each || len(seen[0]) == 0 || seen[0][last].Seq != last {
		t.Errorf("last: got %d, want %d, and every reader to see it", last, writers*each)
	}
}

// TestAWriterThatFallsBehindHoldsUpNoOtherWriter claims a number and does not write it until the log has moved on.
func TestAWriterThatFallsBehindHoldsUpNoOtherWriter(t *testing.T) {
	log := NewLog(clock.RealClock{}, 2*blockSize)
	p := New(log)
	seq, slot := log.claim()
	p.At(RingAppend, "default/a", 2)
	assert.Equal(t, log.Last(), 0, "last before the first record is written")
	for range 5 * blockSize {
		p.At(RingAppend, "default/a", 3)
	}
	slot.seq.Store(seq) // into a block that no reader uses any more
	if last, want := log.Last(), uint64(5*blockSize+2); last != want {
		t.Errorf("last: got %d, want %d", last, want)
	}
	records, ok := log.Since(nil, log.Oldest()-1, 10*blockSize)
	if !ok || len(records) != 2*blockSize {
		t.Errorf("the log shows %d records, %v, want the newest %d", len(records), ok, 2*blockSize)
	}
}

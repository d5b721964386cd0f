package probe

import (
	"crypto/rand"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Record is one moment in the log. Records are values and never change. In JSON, points go by name, so that a recording
// outlives a change of the table; resource versions are text, as on every wire here.
type Record struct {
	Seq      uint64        `json:"seq"` // 1, 2, 3, … without gaps
	Time     time.Duration `json:"t"`   // since the log was made, on the log's clock
	Point    Point         `json:"point"`
	Resource string        `json:"resource,omitempty"` // "pods", or "" when no resource is concerned
	Subject  string        `json:"subject,omitempty"`  // who: "w3", "l1", "cacher"; "" when there is only one
	Type     string        `json:"type,omitempty"`     // event type, for moments about a typed event
	// as the station knows it: "/registry/pods/default/a" in the server half, "default/a" in the client half
	Key   string `json:"key,omitempty"`
	RV    uint64 `json:"rv,omitempty,string"`
	Args  [4]int `json:"args"`            // meanings in [Info.Args] of the point
	Texts Texts  `json:"texts,omitempty"` // hostile input: escape before showing
}

// DefaultLogSize is how many records a log keeps: about ten seconds at five thousand records a second.
const DefaultLogSize = 1 << 16

// Log is the append-only, bounded log of moments. It keeps the newest records and gives each a sequence number, so
// that a reader which asks for records the log no longer holds is told so instead of being given a gap.
// All methods are safe for concurrent use.
//
// The log is a ring. A goroutine that reports takes the mutex for the number of its record, and writes the record
// without it: the number in the slot comes last, and says that the record is complete. A reader holds the mutex while
// it copies at most [readBatch] records: no slot that it reads can be given away meanwhile, and it waits for those that
// are still being written. No reader holds up the pipeline for longer than some tens of microseconds.
type Log struct {
	// Set by NewLog, never changed.
	clock clock.PassiveClock
	start time.Time
	size  uint64 // how many records are kept
	id    string // tells this log from every other one

	names *Names
	gate  Gate // behind every record; open, unless the world is held
	lanes lanes

	mu     sync.Mutex    // guards the fields below; innermost: no other lock is taken while it is held
	first  uint64        // sequence number of the first record there ever was: 1, unless another run's are replayed
	last   uint64        // sequence number of the newest record
	place  uint64        // of the next record in the ring
	latest time.Duration // its time
	blocks [][]Record    // the ring, cut into blocks that are made when they are first written
}

const (
	blockSize = 1024 // records of one block, a seventh of a megabyte: a log that is hardly used takes little memory
	readBatch = 1024 // records that a reader copies while it holds the lock
)

// NewLog returns an empty log that keeps the newest size records; size 0 means [DefaultLogSize].
func NewLog(clk clock.PassiveClock, size int) *Log {
	if size <= 0 {
		size = DefaultLogSize
	}
	l := &Log{clock: clk, start: clk.Now(), size: uint64(size), first: 1, id: rand.Text(),
		names: NewNames(), blocks: make([][]Record, (size+blockSize-1)/blockSize)}
	l.gate.names = l.names
	return l
}

// ID returns what tells this log from every other one, also from that of another run: a reader that has come from
// there begins again.
func (l *Log) ID() string { return l.id }

// Names returns what the clients of watchers are called of which a record tells, those that have left the log
// included. Of streams that were opened before the first record, the log's owner says so.
func (l *Log) Names() *Names { return l.names }

func (l *Log) now() time.Duration { return l.clock.Since(l.start) }

// slotLocked returns the record at a place of the ring.
func (l *Log) slotLocked(place uint64) *Record {
	block := &l.blocks[place/blockSize]
	if *block == nil {
		*block = make([]Record, blockSize)
	}
	return &(*block)[place%blockSize]
}

// put appends a record and returns its number. t is the time as its reporter saw it: a record is never given an earlier
// one than the record before it. The key is cut; the texts are, before.
func (l *Log) put(t time.Duration, point Point, resource, subject, typ string, texts Texts, key string,
	rv uint64, args []int) uint64 {
	r, seq, t := l.next(t)
	// Field by field: a whole record, put together and copied, would take twice as long.
	r.Time, r.Point, r.Resource, r.Subject, r.Type, r.RV = t, point, resource, subject, typ, rv
	r.Texts, r.Key = texts, cutKey(key)
	r.Args = [4]int{}
	copy(r.Args[:], args)
	l.names.Note(r)
	atomic.StoreUint64(&r.Seq, seq)
	return seq
}

// next gives out the next number, with the time and the place of its record. The place is the caller's alone until it
// stores the number there.
func (l *Log) next(t time.Duration) (r *Record, seq uint64, at time.Duration) {
	l.mu.Lock()
	l.last++
	l.latest = max(l.latest, t)
	r, seq, at = l.slotLocked(l.place), l.last, l.latest
	if l.place++; l.place == l.size { // a division would cost more
		l.place = 0
	}
	before := uint64(0) // the record that was here
	if seq >= l.first+l.size {
		before = seq - l.size
	}
	l.mu.Unlock() // without defer: that record may still be being written
	await(r, before)
	return r, seq, at
}

// await returns when the record seq is complete in its place. Its reporter holds no lock of the log, and waits at most
// for the record that stood there before.
func await(r *Record, seq uint64) {
	for atomic.LoadUint64(&r.Seq) != seq {
		runtime.Gosched()
	}
}

// Replay appends a record of another run, at the time it was made there. If it is the first one here, the log begins
// with its sequence number; every other one gets the next, which is its own if the recording has no gap.
func (l *Log) Replay(r Record) {
	l.begin(r.Seq)
	l.put(r.Time, r.Point, r.Resource, r.Subject, r.Type, r.Texts, r.Key, r.RV, r.Args[:])
}

// begin makes seq the number of the first record, if there is none yet.
func (l *Log) begin(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == l.first-1 && seq > 0 {
		l.first, l.last, l.place = seq, seq-1, (seq-1)%l.size
	}
}

// Append appends a record of what another program has done, now. No gate could hold that up, so none holds up the
// caller.
func (l *Log) Append(r Record) {
	l.put(l.now(), r.Point, r.Resource, r.Subject, r.Type, r.Texts, r.Key, r.RV, r.Args[:])
}

// Gate returns the gate at which the goroutines stand that report to this log.
func (l *Log) Gate() *Gate { return &l.gate }

// Size returns how many records the log keeps.
func (l *Log) Size() int { return int(l.size) }

// Last returns the sequence number of the newest record, 0 if there is none.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Oldest returns the sequence number of the oldest record still held, or of the next one to come if there is none.
func (l *Log) Oldest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldestLocked()
}

func (l *Log) oldestLocked() uint64 {
	return max(l.first, l.last-min(l.last, l.size)+1)
}

// Since appends to dst the records in (seq, newest], at most max of them, oldest first, and returns the extended
// slice, which the caller owns. ok is false, and nothing is appended, if the log no longer holds seq+1: the caller
// has to begin again from a snapshot, as a watcher does after 410 Gone. A seq from the future is answered with
// ok false too: the reader knew another log.
func (l *Log) Since(dst []Record, seq uint64, max int) (records []Record, ok bool) {
	before := len(dst)
	for {
		n := len(dst)
		if dst, ok = l.some(dst, seq, min(max, readBatch)); !ok {
			return dst[:before], false // perhaps the log has overrun us on the way
		}
		got := len(dst) - n
		if max -= got; got == 0 || max == 0 {
			return dst, true
		}
		seq += uint64(got)
	}
}

// some is Since for as many records as are copied at once.
func (l *Log) some(dst []Record, seq uint64, max int) (records []Record, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq+1 < l.oldestLocked() || seq > l.last {
		return dst, false
	}
	for n := seq + 1; n <= min(l.last, seq+uint64(max)); n++ {
		r := l.slotLocked((n - 1) % l.size)
		await(r, n)
		dst = append(dst, *r)
	}
	return dst, true
}

// Between yields the records in (from, to] that the log still holds, oldest first: where the log overruns its reader,
// records are left out. Each record is valid until the next one is yielded.
func (l *Log) Between(from, to uint64) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		var batch []Record
		for from < to {
			var ok bool
			batch, ok = l.some(batch[:0], from, int(min(readBatch, to-from)))
			switch {
			case !ok && from < l.Last():
				from = l.Oldest() - 1
			case len(batch) == 0:
				return
			}
			for i := range batch {
				if !yield(&batch[i]) {
					return
				}
				from = batch[i].Seq
			}
		}
	}
}

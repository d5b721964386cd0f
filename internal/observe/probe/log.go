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

// Record is one moment in the log. Records are values and never change. In JSON, points are names, so that a recording
// stays valid when points are added, and resource versions are strings, as in Kubernetes.
type Record struct {
	Seq      uint64        `json:"seq"` // 1, 2, 3, … without gaps
	Time     time.Duration `json:"t"`   // the time since the log was made, on the log's clock
	Point    Point         `json:"point"`
	Resource string        `json:"resource,omitempty"` // "pods", or "" if the moment concerns no resource
	Subject  string        `json:"subject,omitempty"`  // "w3", "l1", "cacher"; "" if the station has only one
	Type     string        `json:"type,omitempty"`     // the event's type, if the moment is about an event
	// The key that the station uses: "/registry/pods/default/a" in the server half, "default/a" in the client half.
	Key   string `json:"key,omitempty"`
	RV    uint64 `json:"rv,omitempty,string"`
	Args  [4]int `json:"args"`            // the point's [Info.Args] gives their names
	Texts Texts  `json:"texts,omitempty"` // hostile input: escape before showing
}

// DefaultLogSize is the usual number of records that a log keeps: thirteen seconds at five thousand records a second.
const DefaultLogSize = 1 << 16

// Log is the append-only, bounded log of moments. It keeps the newest records, and gives each a sequence number, by
// which [Log.Since] detects that the log no longer holds a reader's next record. All methods are safe for concurrent
// use.
//
// The log is a ring. A goroutine that reports holds the mutex only while it takes a number. Then it writes the record,
// and finally the number, which marks the record as complete. A reader holds the mutex while it copies at most
// [readBatch] records: no writer then gets a slot of this batch, and the reader waits for writers that have one. No
// reader delays the pipeline for longer than tens of microseconds.
type Log struct {
	// Set by NewLog, never changed.
	clock clock.PassiveClock
	start time.Time
	size  uint64 // records that the log keeps
	id    string // differs from every other log's id

	names *Names
	gate  Gate // checked after each record of a Probe; open unless a hold has closed it
	lanes lanes

	mu     sync.Mutex    // guards the fields below; innermost: no other lock is taken while it is held
	first  uint64        // number of the first record that the log ever had: 1, unless it replays another run
	last   uint64        // sequence number of the newest record
	place  uint64        // the next record's place in the ring
	latest time.Duration // the newest record's time
	blocks [][]Record    // the ring, in blocks that are made when they are first written
}

const (
	blockSize = 1024 // records in a block, a seventh of a megabyte: a log with few records takes little memory
	readBatch = 1024 // maximum number of records that a reader copies while it holds the lock
)

// NewLog returns an empty log that keeps the newest size records; a size of 0 or less means [DefaultLogSize].
func NewLog(clk clock.PassiveClock, size int) *Log {
	if size <= 0 {
		size = DefaultLogSize
	}
	l := &Log{clock: clk, start: clk.Now(), size: uint64(size), first: 1, id: rand.Text(),
		names: NewNames(), blocks: make([][]Record, (size+blockSize-1)/blockSize)}
	l.gate.names = l.names
	return l
}

// ID returns the log's id, which differs from every other log's, including that of another run. A reader that has read
// another log must begin again.
func (l *Log) ID() string { return l.id }

// Names returns the names of the watchers' clients, including watchers whose records have left the log. The log takes a
// name from the record that opens a stream; its owner adds the names of streams that opened before the first record.
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

// put appends a record and returns its number. t is the time of the moment; put raises t to the previous record's time
// if t is earlier. put shortens the key; the caller has shortened the texts.
func (l *Log) put(t time.Duration, point Point, resource, subject, typ string, texts Texts, key string,
	rv uint64, args []int) uint64 {
	r, seq, t := l.next(t)
	// Writing field by field takes half the time of making a whole record and copying it.
	r.Time, r.Point, r.Resource, r.Subject, r.Type, r.RV = t, point, resource, subject, typ, rv
	r.Texts, r.Key = texts, cutKey(key)
	r.Args = [4]int{}
	copy(r.Args[:], args)
	l.names.Note(r)
	atomic.StoreUint64(&r.Seq, seq)
	return seq
}

// next takes the next number, with the time and the place of its record, and waits until the place's last record is
// complete. The place belongs to the caller until it stores the number there.
func (l *Log) next(t time.Duration) (r *Record, seq uint64, at time.Duration) {
	l.mu.Lock()
	l.last++
	l.latest = max(l.latest, t)
	r, seq, at = l.slotLocked(l.place), l.last, l.latest
	if l.place++; l.place == l.size { // a division would take longer
		l.place = 0
	}
	before := uint64(0) // the number of the record that this place held
	if seq >= l.first+l.size {
		before = seq - l.size
	}
	l.mu.Unlock() // not deferred, because await may block for a while
	await(r, before)
	return r, seq, at
}

// await returns when the record seq is complete in its place. The goroutine that writes the record does not hold the
// log's mutex, and waits at most for the previous record in the same place.
func await(r *Record, seq uint64) {
	for atomic.LoadUint64(&r.Seq) != seq {
		runtime.Gosched()
	}
}

// Replay appends a record of another run, with its time in that run. In an empty log, the record keeps its number. Each
// later one gets the next number, which equals r.Seq if the recording has no gap.
func (l *Log) Replay(r Record) {
	l.mu.Lock()
	if l.last == l.first-1 && r.Seq > 0 {
		l.first, l.last, l.place = r.Seq, r.Seq-1, (r.Seq-1)%l.size
	}
	l.mu.Unlock()
	l.put(r.Time, r.Point, r.Resource, r.Subject, r.Type, r.Texts, r.Key, r.RV, r.Args[:])
}

// Append appends a record about another program, and gives it the present time. The gate cannot hold another program,
// so Append does not wait at the gate.
func (l *Log) Append(r Record) {
	l.put(l.now(), r.Point, r.Resource, r.Subject, r.Type, r.Texts, r.Key, r.RV, r.Args[:])
}

// Gate returns the gate that holds the goroutines which report to this log.
func (l *Log) Gate() *Gate { return &l.gate }

// Size returns the maximum number of records in the log.
func (l *Log) Size() int { return int(l.size) }

// Last returns the sequence number of the newest record, or 0 if there is none.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Oldest returns the number of the oldest record that the log still holds, or of the next record if it holds none.
func (l *Log) Oldest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldestLocked()
}

func (l *Log) oldestLocked() uint64 {
	return max(l.first, l.last-min(l.last, l.size)+1)
}

// Since appends to dst the records in (seq, newest], at most max of them, oldest first, and returns the extended slice,
// which the caller owns. ok is false, and nothing is appended, if the log no longer holds seq+1: the caller has to
// begin again from a snapshot, as a watcher does after 410 Gone. ok is also false if seq is beyond the newest record,
// because such a seq must come from another log.
func (l *Log) Since(dst []Record, seq uint64, max int) (records []Record, ok bool) {
	before := len(dst)
	for {
		n := len(dst)
		if dst, ok = l.some(dst, seq, min(max, readBatch)); !ok {
			return dst[:before], false // the log may meanwhile have overwritten the reader's next record
		}
		got := len(dst) - n
		if max -= got; got == 0 || max == 0 {
			return dst, true
		}
		seq += uint64(got)
	}
}

// some is Since for at most readBatch records.
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

// Between yields the records in (from, to] that the log still holds, oldest first. It leaves out records that the log
// drops meanwhile. Each record is valid until the next one is yielded.
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

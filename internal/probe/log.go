package probe

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Record is one moment as it stands in the log. Records are values and never change.
type Record struct {
	Seq      uint64        // 1, 2, 3, … without gaps
	Time     time.Duration // since the log was made, on the log's clock
	Point    Point
	Resource string // "pods", or "" when no resource is concerned
	Subject  string // who: "w3", "l1", "cacher", "informer"; "" when there is only one
	Type     string // event type, for moments about a typed event
	Key      string // as the station knows it: "/registry/pods/default/a" in the server half, "default/a" in the client half
	RV       uint64
	Args     [4]int // meanings in [Info.Args] of the point
	Text     string // hostile input: escape before showing
}

// DefaultLogSize is how many records a log keeps: about ten seconds at five thousand records a second.
const DefaultLogSize = 1 << 16

// Log is the append-only, bounded log of moments. It keeps the newest records and gives each a sequence number, so
// that a reader which asks for records the log no longer holds is told so instead of being given a gap.
// All methods are safe for concurrent use.
type Log struct {
	// Set by NewLog, never changed.
	clock clock.PassiveClock
	start time.Time

	gate Gate // behind every record; open, unless somebody holds the world

	mu      sync.Mutex // guards the fields below; innermost everywhere: no other lock is taken while it is held
	records []Record   // a ring: record seq lies in slot (seq-1) % len
	first   uint64     // sequence number of the first record there ever was: 1, unless another run's are replayed
	next    uint64     // sequence number of the next record; the log holds [max(first, next-len), next)
}

// NewLog returns an empty log that keeps the newest size records; size 0 means [DefaultLogSize].
func NewLog(clk clock.PassiveClock, size int) *Log {
	if size <= 0 {
		size = DefaultLogSize
	}
	return &Log{clock: clk, start: clk.Now(), records: make([]Record, size), first: 1, next: 1}
}

func (l *Log) append(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The time is taken under the lock so that it never runs backwards along the log.
	r.Time = l.clock.Since(l.start)
	r.Seq = l.next
	l.records[(l.next-1)%uint64(len(l.records))] = *r
	l.next++
}

// Replay appends a record of another run, at the time it was made there. If it is the first one here, the log begins with
// its sequence number; every other one gets the next, which is its own if the recording has no gap.
func (l *Log) Replay(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == l.first && r.Seq > 0 {
		l.first, l.next = r.Seq, r.Seq
	}
	r.Seq = l.next
	l.records[(l.next-1)%uint64(len(l.records))] = r
	l.next++
}

// Gate returns the gate at which the goroutines stand that report to this log.
func (l *Log) Gate() *Gate { return &l.gate }

// Last returns the sequence number of the newest record, 0 if there is none.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1
}

// Oldest returns the sequence number of the oldest record still held, or of the next one to come if there is none.
func (l *Log) Oldest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldestLocked()
}

// oldestLocked expects l.mu.
func (l *Log) oldestLocked() uint64 {
	if size := uint64(len(l.records)); l.next > size {
		return max(l.first, l.next-size)
	}
	return l.first
}

// Size returns how many records the log keeps.
func (l *Log) Size() int { return len(l.records) }

// Since appends to dst the records in (seq, newest], at most max of them, oldest first, and returns the extended
// slice, which the caller owns. ok is false, and nothing is appended, if the log no longer holds seq+1: the caller
// has to begin again from a snapshot, as a watcher does after 410 Gone. A seq from the future is answered with
// ok false too: the reader knew another log.
func (l *Log) Since(dst []Record, seq uint64, max int) (records []Record, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq+1 < l.oldestLocked() || seq >= l.next {
		return dst, false
	}
	for n := seq + 1; n < l.next && max > 0; n++ {
		dst = append(dst, l.records[(n-1)%uint64(len(l.records))])
		max--
	}
	return dst, true
}

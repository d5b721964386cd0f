package viz

import (
	"net/http"
	"slices"
	"time"

	"listwatch/internal/observe/probe"
	"listwatch/viz/frame"
)

const (
	bucketWidth = 500 * time.Millisecond // of the timeline's histogram
	maxBuckets  = 8192                   // more than an hour if something happens all the time
	maxFlags    = 1024
)

// limits are sent to the page, which keeps the same timeline and sums up at the same rate.
var limits = frame.Limits{BucketWidth: int64(bucketWidth), Buckets: maxBuckets, Flags: maxFlags,
	Writes: []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}}

// span is the answer of /viz/timeline: how much there is to see, and where.
type span struct {
	Log    string `json:"log"`
	Oldest uint64 `json:"oldest"` // the first picture that can be had
	Last   uint64 `json:"last"`
	T      int64  `json:"t"`     // of the last one: nanoseconds since the log was made
	Width  int64  `json:"width"` // of a bucket, in nanoseconds
	// number (its time is that many widths), first seq, records, events; empty ones are left out
	Buckets [][4]uint64 `json:"buckets"`
	Flags   []flag      `json:"flags"`
}

// flag is one anomaly on the timeline.
type flag struct {
	Seq      uint64 `json:"seq"`
	T        int64  `json:"t"`
	Point    string `json:"point"`
	Resource string `json:"resource,omitempty"`
	Says     string `json:"says"`
}

// index knows, for the records of a log, when how many came and which of them must not be overlooked. It belongs to a
// folder and is guarded by its lock.
type index struct {
	buckets []bucket // oldest first, none empty
	flags   []flag   // oldest first
	events  uint64   // ever
}

type bucket struct{ number, seq, records, events uint64 }

// add takes in the next records of a log, whose names are given.
func (x *index) add(records []probe.Record, names *probe.Names) {
	for i := range records {
		r := &records[i]
		number := uint64(r.Time / bucketWidth)
		if n := len(x.buckets); n == 0 || x.buckets[n-1].number < number {
			x.buckets = append(x.buckets, bucket{number: number, seq: r.Seq})
		}
		b := &x.buckets[len(x.buckets)-1]
		b.records++
		if r.Point == probe.RingAppend {
			b.events++
			x.events++
		}
		if r.Anomaly() {
			x.flags = append(x.flags, flag{Seq: r.Seq, T: int64(r.Time), Point: r.Point.String(), Resource: r.Resource,
				Says: names.Sentence(r)})
		}
	}
	if n := len(x.flags) - maxFlags; n > 0 {
		x.flags = slices.Delete(x.flags, 0, n)
	}
}

// forget drops what lies before the record oldest.
func (x *index) forget(oldest uint64) {
	n := max(0, len(x.buckets)-maxBuckets)
	for n+1 < len(x.buckets) && x.buckets[n+1].seq <= oldest {
		n++
	}
	if n > 0 {
		x.buckets = slices.Delete(x.buckets, 0, n)
	}
	x.flags = slices.DeleteFunc(x.flags, func(f flag) bool { return f.Seq < oldest })
}

func (x *index) rows() [][4]uint64 {
	rows := make([][4]uint64, len(x.buckets))
	for i, b := range x.buckets {
		rows[i] = [4]uint64{b.number, b.seq, b.records, b.events}
	}
	return rows
}

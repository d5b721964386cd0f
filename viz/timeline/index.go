package timeline

import (
	"net/http"
	"time"

	"listwatch/internal/observe/probe"
)

const (
	bucketWidth = 500 * time.Millisecond // of the timeline's histogram
	maxBuckets  = 8192                   // more than an hour if something happens all the time
	maxFlags    = 1024
)

// Limits are what the program and the page have to agree on (limits.js).
type Limits struct {
	BucketWidth int64 `json:"bucketWidth"` // nanoseconds of one bucket of the timeline
	Buckets     int   `json:"buckets"`     // of the timeline, at most
	Flags       int   `json:"flags"`       // anomalies on the timeline, at most

	Writes []string `json:"writes"` // the methods of requests that change something: only those are drawn
}

// Limit is sent to the page, which keeps the same timeline and sums up at the same rate.
var Limit = Limits{BucketWidth: int64(bucketWidth), Buckets: maxBuckets, Flags: maxFlags,
	Writes: []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}}

// Span is the answer of /viz/timeline: how much there is to see, and where.
type Span struct {
	Log    string `json:"log"`
	Oldest uint64 `json:"oldest"` // the first picture that can be had
	Last   uint64 `json:"last"`
	T      int64  `json:"t"`     // of the last one: nanoseconds since the log was made
	Width  int64  `json:"width"` // of a bucket, in nanoseconds
	// number (its time is that many widths), first seq, records, events; empty ones are left out
	Buckets [][4]uint64 `json:"buckets"`
	Flags   []Flag      `json:"flags"`
}

// Flag is one anomaly on the timeline.
type Flag struct {
	Seq      uint64 `json:"seq"`
	T        int64  `json:"t"`
	Point    string `json:"point"`
	Resource string `json:"resource,omitempty"`
	Says     string `json:"says"`
}

// timeline answers GET /viz/timeline with when how much happened, and what must not be overlooked, in what the log
// still holds.
func (p Past) timeline(r *http.Request) (any, error) {
	oldest, last, t, err := p.Pictures.Bounds(r.Context())
	if err != nil {
		return nil, err
	}
	line := Span{Log: p.Log.ID(), Oldest: oldest, Last: last, T: t, Width: int64(bucketWidth),
		Buckets: [][4]uint64{}, Flags: []Flag{}}
	for r := range p.Log.Between(line.Oldest, line.Last) {
		number := uint64(r.Time / bucketWidth)
		if n := len(line.Buckets); n == 0 || line.Buckets[n-1][0] < number {
			line.Buckets = append(line.Buckets, [4]uint64{number, r.Seq})
		}
		b := &line.Buckets[len(line.Buckets)-1]
		b[2]++
		if r.Point == probe.RingAppend {
			b[3]++
		}
		if r.Anomaly() {
			line.Flags = append(line.Flags, Flag{Seq: r.Seq, T: int64(r.Time), Point: r.Point.String(),
				Resource: r.Resource, Says: p.Log.Names().Sentence(r)})
		}
	}
	line.Buckets = line.Buckets[max(0, len(line.Buckets)-maxBuckets):]
	line.Flags = line.Flags[max(0, len(line.Flags)-maxFlags):]
	return line, nil
}

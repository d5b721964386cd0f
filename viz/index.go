package viz

import (
	"net/http"
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

// timeline answers GET /viz/timeline with when how much happened, and what must not be overlooked, in what the log
// still holds.
func (u *UI) timeline(r *http.Request) (any, error) {
	line, err := u.folder.bounds(r.Context())
	if err != nil {
		return nil, err
	}
	line.Log = u.id
	for r := range u.config.Log.Between(line.Oldest, line.Last) {
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
			line.Flags = append(line.Flags, flag{Seq: r.Seq, T: int64(r.Time), Point: r.Point.String(),
				Resource: r.Resource, Says: u.config.Log.Names().Sentence(r)})
		}
	}
	line.Buckets = line.Buckets[max(0, len(line.Buckets)-maxBuckets):]
	line.Flags = line.Flags[max(0, len(line.Flags)-maxFlags):]
	return line, nil
}

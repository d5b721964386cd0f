package timeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/sandbox"
	"listwatch/viz/reply"
)

// Past serves the whole log, as pictures and as records, and the embedded recordings.
type Past struct {
	Log      *probe.Log
	Pictures Pictures
	// Recording is the replayed recording's hash, for links to it; "" if the log is the program's own.
	Recording string
	Switches  map[string]string // the program's switches by name: "fifo" is "real", and so on
}

// Pictures are the folded states of the log. Methods return ctx's errors and those that they document.
type Pictures interface {
	// Snapshot returns the newest picture as JSON, and the seq of its last record.
	Snapshot(ctx context.Context) (seq uint64, state json.RawMessage, err error)
	// Keyframe returns the newest picture at or before a record. The error is 410 Gone if there is none any more.
	Keyframe(ctx context.Context, seq uint64) (fold.Keyframe, error)
	// Bounds returns the first and the last record with a picture, and the time of the last.
	Bounds(ctx context.Context) (oldest, last uint64, t int64, err error)
}

// Mount adds the routes of the log and of the embedded recordings.
func (p Past) Mount(router chi.Router) {
	router.Handle("GET /viz/snapshot", reply.With(p.snapshot))
	router.Handle("GET /viz/keyframe", reply.With(p.keyframe))
	router.Handle("GET /viz/records", reply.With(p.records))
	router.Handle("GET /viz/timeline", reply.With(p.timeline))
	router.Handle("GET /viz/points", reply.Look(fold.Points))
	router.Get("/viz/told", p.serveTold)
	router.Get("/viz/recording", p.serveRecording)
	router.Get("/viz/takes/{name}", serveTake)
}

// snapshot answers GET /viz/snapshot: the list of the page's list-watch, with everything up to seq.
func (p Past) snapshot(r *http.Request) (any, error) {
	seq, state, err := p.Pictures.Snapshot(r.Context())
	return struct {
		Seq       uint64            `json:"seq"`
		Log       string            `json:"log"`
		Size      int               `json:"size"` // the number of records that the log keeps
		Recording string            `json:"recording,omitempty"`
		Switches  map[string]string `json:"switches,omitempty"`
		State     json.RawMessage   `json:"state"`
	}{seq, p.Log.ID(), p.Log.Size(), p.Recording, p.Switches, state}, err
}

// maxRecords is the maximum number of records in one response.
const maxRecords = 10_000

// keyframe answers GET /viz/keyframe?at=SEQ with a picture at or before SEQ. The page folds the records after it up to
// SEQ. The error is 410 Gone if there is no such picture any more, or the request is about another log.
func (p Past) keyframe(r *http.Request) (any, error) {
	at, err := reply.Number(r.URL.Query(), "at", p.Log.Last())
	if err != nil {
		return nil, err
	}
	if err := reply.About(p.Log, r); err != nil {
		return nil, err
	}
	frame, err := p.Pictures.Keyframe(r.Context(), at)
	return struct {
		Log   string          `json:"log"`
		Seq   uint64          `json:"seq"`
		State json.RawMessage `json:"state"`
	}{p.Log.ID(), frame.Seq, frame.State}, err
}

// serveRecording answers GET /viz/recording with a recording of the log that begins with its oldest picture.
func (p Past) serveRecording(w http.ResponseWriter, r *http.Request) {
	oldest, last, _, err := p.Pictures.Bounds(r.Context())
	var frame fold.Keyframe
	if err == nil {
		frame, err = p.Pictures.Keyframe(r.Context(), oldest)
	}
	records, ok := p.Log.Since(nil, frame.Seq, int(last-frame.Seq))
	if err == nil && !ok {
		err = reply.Refuse(http.StatusGone, "record %d has left the log: ask again", frame.Seq+1)
	}
	if err != nil {
		reply.Wrong(w, r, err)
		return
	}
	header := recording.NewHeader(time.Now(), p.Switches)
	header.Keyframe = frame.State
	w.Header().Set("Content-Type", "application/gzip")
	_ = recording.WriteAll(w, header, records) // fails only if the client has disconnected
}

// records answers GET /viz/records?from=&to=&limit= with up to limit matching records in [from, to), and the record to
// continue from. It also takes [ReadQuery]'s parameters. The error is 400, or 410 if a record in [from, to) is gone.
func (p Past) records(r *http.Request) (any, error) {
	log, query := p.Log, r.URL.Query()
	from, wrongFrom := reply.Number(query, "from", log.Oldest())
	to, wrongTo := reply.Number(query, "to", log.Last()+1)
	limit, wrongLimit := reply.Number(query, "limit", maxRecords)
	want, wrong := ReadQuery(query)
	if err := cmp.Or(wrongFrom, wrongTo, wrongLimit, wrong); err != nil {
		return nil, err
	}
	if from == 0 || to < from {
		return nil, reply.Refuse(http.StatusBadRequest, "want 1 <= from <= to, got [%d, %d)", from, to)
	}
	if err := reply.About(p.Log, r); err != nil {
		return nil, err
	}
	body, next, found := []byte{'['}, from, uint64(0)
	_, whole := log.Since(nil, from-1, 0)
	whole = whole || from > log.Last()
	for r := range log.Between(from-1, to-1) {
		if whole = r.Seq == next; !whole || found == min(limit, maxRecords) {
			break
		}
		next++
		if want.Matches(r) {
			found++
			body = fold.AppendNext(body, r)
		}
	}
	if !whole {
		return nil, reply.Refuse(http.StatusGone, "record %d has left the log: the oldest is %d", next, log.Oldest())
	}
	return struct {
		Log     string          `json:"log"`
		Oldest  uint64          `json:"oldest"`
		Next    uint64          `json:"next"` // the first record that the answer does not cover
		Records json.RawMessage `json:"records"`
	}{p.Log.ID(), log.Oldest(), next, append(body, ']')}, nil
}

// ReadQuery reads a query of records: resource=&subject=&type=&key=&rv=&station=&point=, where commas separate several
// points. Any other parameter with a field's name is a pattern for that field, as in every [probe.Query]:
// agent=kubectl*, status=409|410. The error is 400.
func ReadQuery(values url.Values) (q probe.Query, err error) {
	q.Resource, q.Subject, q.Key = values.Get("resource"), values.Get("subject"), values.Get("key")
	q.Type, q.Station = values.Get("type"), probe.Station(values.Get("station"))
	if points := values.Get("point"); points != "" {
		for name := range strings.SplitSeq(points, ",") {
			point, known := probe.PointNamed(name)
			if !known {
				return q, reply.Refuse(http.StatusBadRequest, "point: there is no %.40q", name)
			}
			q.Points = append(q.Points, point)
		}
	}
	for name := range values {
		has := func(p probe.Point) bool { return p.Info().Has(probe.Field(name)) }
		if !slices.Contains(asked, name) && slices.ContainsFunc(probe.Points(), has) {
			if q.Fields == nil {
				q.Fields = map[probe.Field]string{}
			}
			q.Fields[probe.Field(name)] = values.Get(name)
		}
	}
	q.RV, err = reply.Number(values, "rv", 0)
	return q, err
}

// asked are the parameters that never name a field, even if a field has the same name.
var asked = []string{"from", "to", "limit", "log", "since", "resource", "subject", "type", "key", "rv", "station",
	"point"}

// serveTold answers GET /viz/told with the sentences of the matching records, one on each line, for a terminal. It
// takes the parameters of [ReadQuery].
func (p Past) serveTold(w http.ResponseWriter, r *http.Request) {
	want, err := ReadQuery(r.URL.Query())
	if err != nil {
		reply.Wrong(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	harmless := func(r rune) rune { // clients choose names, and a terminal would execute control characters in them
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}
	log := p.Log
	for record := range log.Between(log.Oldest()-1, log.Last()) {
		if want.Matches(record) {
			fmt.Fprintln(w, strings.Map(harmless, log.Names().Sentence(record))) // the peer may have disconnected
		}
	}
}

// serveTake answers GET /viz/takes/NAME with an embedded recording, or 404.
func serveTake(w http.ResponseWriter, r *http.Request) {
	take, ok := takes.Find(chi.URLParam(r, "name"))
	if !ok {
		reply.Error(w, r, http.StatusNotFound, "there is no recording of that name")
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(take.File()) // fails only if the client has disconnected
}

const (
	bucketWidth = 500 * time.Millisecond // the width of a bar of the timeline
	maxBuckets  = 8192                   // more than an hour if something happens all the time
	maxFlags    = 1024
)

// Limits are settings that the program and the page share (dom.js).
type Limits struct {
	BucketWidth int64 `json:"bucketWidth"` // the width of a bucket of the timeline, in ns
	Buckets     int   `json:"buckets"`     // the maximum number of buckets on the timeline
	Flags       int   `json:"flags"`       // the maximum number of anomalies on the timeline

	Writes []string `json:"writes"` // the methods that change something; of others, only resumed watches are drawn

	Viewers string `json:"viewers"` // the agents whose changes go first
	Demo    string `json:"demo"`    // the agent whose changes give way to the viewers'
}

// Limit is sent to the page, which keeps the same timeline and applies the same rules to viewers' changes.
var Limit = Limits{BucketWidth: int64(bucketWidth), Buckets: maxBuckets, Flags: maxFlags,
	Writes:  []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
	Viewers: sandbox.Viewers, Demo: sandbox.Demo}

// Span is the answer of /viz/timeline: the extent of the log, and its records over time.
type Span struct {
	Log    string `json:"log"`
	Oldest uint64 `json:"oldest"` // the first record with a picture
	Last   uint64 `json:"last"`
	T      int64  `json:"t"`     // the last record's time, in ns since the log began
	Width  int64  `json:"width"` // the width of a bucket, in ns
	// A bucket has its time divided by Width, first seq, numbers of records and changes. Empty buckets are left out.
	Buckets [][4]uint64 `json:"buckets"`
	Flags   []Flag      `json:"flags"`
}

// Flag is one anomaly on the timeline.
type Flag struct {
	Seq      uint64 `json:"seq"`
	T        int64  `json:"t"`
	Point    string `json:"point"`
	Resource string `json:"resource,omitempty"`
}

// timeline answers GET /viz/timeline with the counts of records over time, and the anomalies, in the current log.
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
				Resource: r.Resource})
		}
	}
	line.Buckets = line.Buckets[max(0, len(line.Buckets)-maxBuckets):]
	line.Flags = line.Flags[max(0, len(line.Flags)-maxFlags):]
	return line, nil
}

package viz

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/viz/reply"
	"listwatch/viz/timeline"
)

const (
	// feedBatch is the most records one frame carries. A feed that is further behind is sent several at once.
	feedBatch = 2048
	// bookmarkPeriod is how long a feed may be silent.
	bookmarkPeriod = time.Second
	// writeTimeout is how long one write to a page may take. A page that reads more slowly resumes, or begins again.
	writeTimeout = 10 * time.Second
)

// events is the watch of the page's list-watch. All fields are required.
type events struct {
	pictures *Pictures
	attend   func(r *http.Request) (leave func()) // called when a page begins to watch
	// news returns the name of an event, and a function that is called with the time since the last call, and returns
	// the data of one that the page is to be told; nil: none.
	news func() (event string, news func(passed time.Duration) any)
	done chan struct{} // closed when the program ends, never sent on: open feeds end
}

// feed is one open /viz/events.
type feed struct {
	// Set when it opens, never changed.
	events
	log     *probe.Log
	w       http.ResponseWriter
	rc      *http.ResponseController
	follows probe.Query // what its page follows: told one by one, whatever is summed up
	event   string      // of its news
	tell    func(passed time.Duration) any

	// Owned by the request's goroutine.
	seq    uint64 // of the last record that was written
	batch  []probe.Record
	out    []byte
	silent time.Duration // since something was written

	counted  uint64        // records when the rate was taken last
	rate     float64       // records a second; what is older than flowMemory hardly counts
	sums     bool          // the page is sent sums
	sinceSum time.Duration // since one was sent
}

// ServeHTTP implements [http.Handler]. It streams the records after since, or after the Last-Event-ID of a client that
// comes back, and without either those from now on; above the display rate it streams their sum and the records of what
// is followed (resource, key, rv). A page of another origin counts as none: no room learns of it. The stream ends when
// the client goes, when the server ends, or with `gone` when the log no longer holds the next record.
func (e events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		query.Set("since", last)
	}
	log := e.pictures.log
	seq, err := reply.Number(query, "since", log.Last())
	follows, wrong := timeline.ReadQuery(query)
	if err := cmp.Or(err, wrong); err != nil {
		reply.Wrong(w, r, err)
		return
	}
	f := &feed{
		events: e, log: log, w: w, rc: http.NewResponseController(w), follows: follows, seq: seq,
		counted: log.Last(), sinceSum: flowPeriod,
	}
	f.event, f.tell = e.news()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if reply.About(log, r) != nil {
		f.gone() // another process's log: its numbers mean nothing here
		return
	}
	f.stream(r)
}

// stream writes a frame every framePeriod until it is ended.
func (f *feed) stream(r *http.Request) {
	ctx, ticker := r.Context(), time.NewTicker(framePeriod)
	defer ticker.Stop()
	if _, ok := f.log.Since(f.batch[:0], f.seq, 0); !ok {
		f.gone() // before anything else is said: who asks for what is not here has nothing to go on from
		return
	}
	if f.bookmark() != nil { // tells the page at once that it is connected, and where
		return
	}
	if !reply.Foreign(r) {
		defer f.attend(r)()
	}
	for passed := time.Duration(0); f.advance(ctx) && f.other(passed) == nil; passed = framePeriod {
		select {
		case <-ctx.Done():
			return
		case <-f.done:
			return
		case <-ticker.C:
			f.silent += framePeriod
			f.sinceSum += framePeriod
		}
	}
}

// other writes what the page is to be told besides the records.
func (f *feed) other(passed time.Duration) error {
	said := f.tell(passed)
	if said == nil {
		return nil
	}
	data, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return f.message(f.event, data)
}

// advance writes whatever there is, or a bookmark if there was nothing for long. It reports whether to go on.
func (f *feed) advance(ctx context.Context) bool {
	for more := true; more; {
		whole := f.sums || f.log.Oldest() <= f.seq+1 // else records have left the log that were to come one by one
		if f.measure(); f.sums && whole {
			return f.flow(ctx)
		}
		records, ok := f.log.Since(f.batch[:0], f.seq, feedBatch)
		f.batch = records
		if !ok {
			f.gone()
			return false
		}
		if len(records) > 0 && f.frame(records) != nil {
			return false
		}
		more = len(records) == feedBatch
	}
	return f.silent < bookmarkPeriod || f.bookmark() == nil
}

// frame writes records as one message. Its id is that of the last one, so that a client resumes after it.
func (f *feed) frame(records []probe.Record) error {
	data := append(f.out[:0], '[')
	for i := range records {
		data = fold.AppendNext(data, &records[i])
	}
	f.out = append(data, ']')
	f.seq = records[len(records)-1].Seq
	return f.message("frame", f.out)
}

// coalesced takes the page to the newest state in one message, instead of all the records in between: it reads too
// slowly, or they come faster than eyes can follow. Every counter in the state is exact, and no anomaly is left out;
// the records can still be had by range.
func (f *feed) coalesced(ctx context.Context) error {
	from := f.seq
	seq, state, err := f.pictures.shared(ctx, from)
	if err != nil {
		return err
	}
	data, err := json.Marshal(struct {
		From    uint64          `json:"from"`
		Seq     uint64          `json:"seq"`
		Records uint64          `json:"records"` // how many are skipped: (from, seq]
		Kept    json.RawMessage `json:"kept"`    // records of them that matter one by one
		State   json.RawMessage `json:"state"`
	}{from, seq, seq - from, f.kept(from, seq), state})
	if err != nil {
		return err
	}
	f.seq = seq
	return f.message("coalesced", data)
}

// bookmark says how far the feed is, although nothing happened.
func (f *feed) bookmark() error {
	return f.message("bookmark", fmt.Appendf(nil, `{"seq":%d}`, f.seq))
}

// gone says that the client has to list again.
func (f *feed) gone() {
	// Whether it arrives is all the same: the stream ends here.
	_ = f.message("gone", fmt.Appendf(nil, `{"oldest":%d,"last":%d}`, f.log.Oldest(), f.log.Last()))
}

// message writes one message and flushes it. Data holds no line break: it is JSON.
func (f *feed) message(event string, data []byte) error {
	f.silent = 0
	// Not every ResponseWriter knows deadlines; without one a dead peer is found by TCP alone.
	_ = f.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := fmt.Fprintf(f.w, "id: %d\nevent: %s\ndata: %s\n\n", f.seq, event, data); err != nil {
		return err
	}
	return f.rc.Flush()
}

// Above so many records a second the page's feed carries sums, and of the records those that matter: the page draws how
// many changes pass each way (stage/streams.js). A page that reads slowly counts those that come while it is written
// to, and so is sent sums earlier.
const (
	flowRecords = 20_000
	flowCalm    = flowRecords / 2        // below it every record is sent again
	flowMemory  = 500 * time.Millisecond // over which the rate is taken
	flowPeriod  = 15 * framePeriod       // between two sums: more often than that, eyes read no figures
	flowTail    = 96                     // of the newest records come with a sum, for the stage and the table
)

// measure takes the rate, and decides by it whether the page is sent sums.
func (f *feed) measure() {
	last := f.log.Last()
	newest := float64(last-f.counted) / framePeriod.Seconds()
	f.counted = last
	f.rate += (newest - f.rate) * framePeriod.Seconds() / flowMemory.Seconds()
	f.sums = f.rate > flowRecords || f.sums && f.rate > flowCalm
}

// flow sends the newest state from time to time, and nothing between. It reports whether to go on.
func (f *feed) flow(ctx context.Context) bool {
	if f.sinceSum >= flowPeriod && f.log.Last() > f.seq {
		f.sinceSum = 0
		return f.coalesced(ctx) == nil
	}
	return f.silent < bookmarkPeriod || f.bookmark() == nil
}

// kept returns as JSON what a page is told of the records in (from, to] although it is sent their sum: every anomaly,
// what it follows, and the newest few. What has left the log by now is left out: the page could not ask for it either.
func (f *feed) kept(from, to uint64) []byte {
	out := []byte{'['}
	for r := range f.log.Between(from, to) {
		if r.Seq+flowTail > to || r.Anomaly() || (f.follows.Key != "" || f.follows.RV != 0) && f.follows.Matches(r) {
			out = fold.AppendNext(out, r)
		}
	}
	return append(out, ']')
}

package viz

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/sandbox"
	"listwatch/viz/reply"
	"listwatch/viz/timeline"
)

const (
	// feedBatch is the maximum number of records in one frame. A feed further behind gets several frames at once.
	feedBatch = 2048
	// bookmarkPeriod is the longest silence of a feed.
	bookmarkPeriod = time.Second
	// writeTimeout bounds one write to a page. A page that reads more slowly must resume, or list again.
	writeTimeout = 10 * time.Second
)

// events serves /viz/events, the watch of the page's list-watch. All fields are required.
type events struct {
	pictures *Pictures
	attend   func() (leave func()) // called when a page begins to watch; leave, when it stops
	// news returns the name of an event, and a function that takes the time since its last call and returns new data
	// for the page, or nil if there is none.
	news func() (event string, news func(passed time.Duration) any)
	done chan struct{} // closed by UI.Run when it ends, which ends every open feed; never sent on
}

// feed is one open /viz/events.
type feed struct {
	// Set by ServeHTTP, never changed.
	events
	log     *probe.Log
	w       http.ResponseWriter
	rc      *http.ResponseController
	follows probe.Query // selects the page's followed records, which are never summed up
	event   string      // the name of the events of news
	tell    func(passed time.Duration) any

	// Owned by the request's goroutine.
	seq      uint64 // the last record written
	batch    []probe.Record
	out      []byte
	silent   time.Duration // the time since the last write
	counted  uint64        // the newest record at the last measure
	rate     float64       // records a second, averaged over about flowMemory
	sums     bool          // whether the page gets sums
	sinceSum time.Duration // the time since the last sum
	own      viewers
}

// viewers holds the viewers' newest changes. A page that gets sums still gets all records of these changes: it shows
// up to five of them, one by one, before other changes. The zero value is ready to use.
type viewers struct {
	asked   [8]uint64      // the records of their requests; a new one replaces the oldest
	changed [8]probe.Query // the commits of those requests
	n       int
	found   int
}

// note remembers a record if the record is a viewer's request, or the commit of such a request.
func (v *viewers) note(r *probe.Record) {
	switch {
	case r.Point == probe.RequestReceived && sandbox.OfViewers(r):
		v.asked[v.n%len(v.asked)] = r.Seq
		v.n++
	case r.Point == probe.TxnCommitted && slices.Contains(v.asked[:], uint64(r.Args[0])) && r.Args[0] != 0:
		v.changed[v.found%len(v.changed)] = probe.Query{Key: probe.ObjectKey(r.Key), RV: r.RV}
		v.found++
	}
}

// have reports whether a record belongs to one of the viewers' changes.
func (v *viewers) have(r *probe.Record) bool {
	its := func(q probe.Query) bool { return q.RV != 0 && q.Matches(r) }
	return slices.Contains(v.asked[:], r.Seq) || slices.ContainsFunc(v.changed[:], its)
}

// ServeHTTP implements [http.Handler]. It streams the records after the parameter since or a returning client's
// Last-Event-ID, or else new records only. Above flowRecords a second it streams sums, each with a few records (see
// kept), such as those of the followed object (resource, key, rv). A page of another origin does not count as a viewer.
// The stream ends when the client disconnects, when the server ends, or with `gone` when the page must list again.
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
		f.gone() // another run's log, whose sequence numbers mean nothing here
		return
	}
	f.stream(r)
}

// stream writes a bookmark and then, every framePeriod, new records and news, until the stream ends; or only `gone`.
func (f *feed) stream(r *http.Request) {
	ctx, ticker := r.Context(), time.NewTicker(framePeriod)
	defer ticker.Stop()
	if _, ok := f.log.Since(f.batch[:0], f.seq, 0); !ok {
		f.gone() // before any other message: the client has no record to continue from
		return
	}
	if f.bookmark() != nil { // the page learns at once that it is connected, and at which record
		return
	}
	if !reply.Foreign(r) {
		defer f.attend()()
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

// other writes the news that is not in the records, if there is any. passed is the time since the last call.
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

// advance writes the new records or their sum, or a bookmark after a long silence. It reports whether to go on.
func (f *feed) advance(ctx context.Context) bool {
	for more := true; more; {
		whole := f.sums || f.log.Oldest() <= f.seq+1 // otherwise the next record has left the log
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

// frame writes records as one message, and notes viewers' changes among them. The message's id is that of the last
// record: a client resumes after that record.
func (f *feed) frame(records []probe.Record) error {
	data := append(f.out[:0], '[')
	for i := range records {
		data = fold.AppendNext(data, &records[i])
		f.own.note(&records[i])
	}
	f.out = append(data, ']')
	f.seq = records[len(records)-1].Seq
	return f.message("frame", f.out)
}

// coalesced sends the newest state in one message, instead of all records in between, because the page reads too
// slowly, or the records come faster than a viewer can follow. Every counter in the state is exact. The message has the
// records to show singly (see kept), and the page can fetch by range those that the log still has.
func (f *feed) coalesced(ctx context.Context) error {
	from := f.seq
	seq, state, err := f.pictures.shared(ctx, from)
	if err != nil {
		return err
	}
	data, err := json.Marshal(struct {
		From    uint64          `json:"from"`
		Seq     uint64          `json:"seq"`
		Records uint64          `json:"records"` // the number of skipped records, those in (from, seq]
		Kept    json.RawMessage `json:"kept"`    // the records among them to show singly
		State   json.RawMessage `json:"state"`
	}{from, seq, seq - from, f.kept(from, seq), state})
	if err != nil {
		return err
	}
	f.seq = seq
	return f.message("coalesced", data)
}

// bookmark sends the feed's position without a record.
func (f *feed) bookmark() error {
	return f.message("bookmark", fmt.Appendf(nil, `{"seq":%d}`, f.seq))
}

// gone writes the stream's last message, after which the client must list again.
func (f *feed) gone() {
	// The stream ends here, whether or not this message arrives.
	_ = f.message("gone", fmt.Appendf(nil, `{"oldest":%d,"last":%d}`, f.log.Oldest(), f.log.Last()))
}

// message writes one message and flushes it. data is JSON without line breaks.
func (f *feed) message(event string, data []byte) error {
	f.silent = 0
	// Not every ResponseWriter has deadlines; without one, only TCP detects a dead peer.
	_ = f.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := fmt.Fprintf(f.w, "id: %d\nevent: %s\ndata: %s\n\n", f.seq, event, data); err != nil {
		return err
	}
	return f.rc.Flush()
}

// Above flowRecords a second, the feed sends sums and the few records that matter singly, and the page draws how many
// changes pass along each way (stage/streams.js). Records that arrive while a write blocks count as those of one frame,
// so for a page that reads slowly the sums begin below that rate.
const (
	flowRecords = 20_000
	flowCalm    = flowRecords / 2        // the rate below which every record is sent again
	flowMemory  = 500 * time.Millisecond // the period over which the rate is averaged
	flowPeriod  = 15 * framePeriod       // the time between two sums; faster numbers are illegible
	flowTail    = 96                     // the number of newest records sent with a sum, for the stage and the table
)

// measure updates the rate, and decides whether the page gets sums.
func (f *feed) measure() {
	last := f.log.Last()
	newest := float64(last-f.counted) / framePeriod.Seconds()
	f.counted = last
	f.rate += (newest - f.rate) * framePeriod.Seconds() / flowMemory.Seconds()
	f.sums = f.rate > flowRecords || f.sums && f.rate > flowCalm
}

// flow sends the newest state every flowPeriod, and in between only bookmarks. It reports whether to go on.
func (f *feed) flow(ctx context.Context) bool {
	if f.sinceSum >= flowPeriod && f.log.Last() > f.seq {
		f.sinceSum = 0
		return f.coalesced(ctx) == nil
	}
	return f.silent < bookmarkPeriod || f.bookmark() == nil
}

// kept returns as JSON the records in (from, to] that a page gets besides their sum: every anomaly, the followed
// object's records, the viewers' own changes, and the newest few. Records that have left the log are missing; the page
// could not fetch them either.
func (f *feed) kept(from, to uint64) []byte {
	for r := range f.log.Between(from, to) {
		f.own.note(r) // a first pass, because etcd's watch may report a change before its writer does
	}
	out := []byte{'['}
	for r := range f.log.Between(from, to) {
		if r.Seq+flowTail > to || r.Anomaly() || f.own.have(r) ||
			(f.follows.Key != "" || f.follows.RV != 0) && f.follows.Matches(r) {
			out = fold.AppendNext(out, r)
		}
	}
	return append(out, ']')
}

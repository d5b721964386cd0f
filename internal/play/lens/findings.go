package lens

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
)

// Bounds of what is kept.
const (
	maxTrails   = 512
	maxSteps    = 16 // lists and watches of one trail
	maxObjects  = 512
	maxWrites   = 64 // of one object
	maxFindings = 256
	maxNamed    = 256 // resources that the log names: a recording may hold twice as many (fold.MaxResources)
)

// election is the resource that the client that leads writes all the time, which is no controller's work.
const election = "leases.coordination.k8s.io"

// request is one request, as the verdicts judge it and the log is told of it.
type request struct {
	Ask
	id   uint64 // the log calls its watcher "c" and this
	line string // see requestLine
	at   time.Time

	trail   *trail // nil: the request is none of the API's, and nothing else is kept of it
	written *write // nil: it writes no object
	named   string // what the log calls its resource; "" if the log names enough of them

	status     int
	retryAfter time.Duration // as a 429 said
	streams    bool          // it is a watch that is answered, and has not ended
	shownIn    *probe.Log    // the newest log in which it has a watcher
	lastFrame  time.Time     // or the header of the answer
	newest     string        // the newest version that the client was given
	given      given         // a frame, once a second
	read       string        // the version of the one before: it has surely been read if the connection was never full
	initialEnd bool
	gone       bool          // a watch that was told that its version is too old
	stuckFor   time.Duration // the connection is full; 0: it never was
	cause      string        // why it ended; "" if it has not
	ended      time.Time

	// since when a piece is being written to the client, in nanoseconds of Unix time; 0: none is. Set by its exchange
	writing atomic.Int64
}

// Finding is one habit of a client that does harm, in words.
type Finding struct {
	ID       string `json:"id"`
	Client   string `json:"client"`
	Resource string `json:"resource"`
	Sentence string `json:"sentence"`
	Advice   string `json:"advice"`
	Chapter  string `json:"chapter"` // folder of the chapter that explains it
	// where it happened to others: "argoproj/argo-workflows#11948"; "" if it is everyday
	Incident string    `json:"incident"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

// findings keeps what clients did, and judges it by [verdicts]. What it keeps is bounded in every respect. Its methods
// may be called from any goroutine; times must not go back.
type findings struct {
	mu       sync.Mutex // guards all fields, and what they lead to; innermost but for the log's
	log      *probe.Log // is told what the lens sees; nil: none is
	running  map[*request]bool
	trails   map[string]*trail
	objects  map[string]*object // that were written, by Ask.one
	said     map[string]*Finding
	named    map[string]bool // resources that the log names
	requests uint64
}

func newFindings() *findings {
	return &findings{trails: map[string]*trail{}, objects: map[string]*object{}, said: map[string]*Finding{},
		named: map[string]bool{}, running: map[*request]bool{}}
}

// trail is what one client did with one resource and one selector: the work of one informer.
type trail struct {
	client, resource string

	rows  []*request        // the newest lists and watches, oldest first
	open  map[*request]bool // watches
	times map[string]int    // how often a verdict has found what it looks for, by its id

	listRV  string // of the newest list; "" before the first
	settled string // the newest version that the client has surely read, at the end of its newest watch
}

// given is a version that was sent to a client.
type given struct {
	at time.Time
	rv string
}

// object is what is remembered of an object that clients write.
type object struct {
	rv     string   // the newest that was seen
	writes []*write // the newest, oldest first
}

// write is one write of an object.
type write struct {
	client, sub string // sub is the subresource
	at          time.Time
	status      int    // 0: it is not answered yet
	rv          string // of the answer
	before      string // the newest version of the object that was seen before
	given       given  // the newest version that the client was given after this write and before its next one
}

// begin notes that a request has come.
func (f *findings) begin(ask Ask, line string, now time.Time) *request {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	r := &request{Ask: ask, at: now, line: line, id: f.requests}
	if ask.Resource == "" {
		return r
	}
	r.trail = kept(f.trails, ask.trail(), maxTrails, func() *trail {
		return &trail{client: ask.Client, resource: ask.Resource, open: map[*request]bool{}, times: map[string]int{}}
	})
	f.running[r] = true
	if plural := ask.plural(); f.named[plural] || len(f.named) < maxNamed {
		f.named[plural], r.named = true, plural
	}
	f.tellLocked(r, probe.RequestReceived, probe.Record{Text: line + " by " + short(ask.Client)})
	switch {
	case ask.writes() && ask.Resource != election:
		o := kept(f.objects, ask.one(), maxObjects, func() *object { return &object{} })
		r.written = &write{client: ask.Client, sub: ask.Subresource, at: now, before: o.rv}
		o.writes = appendLast(o.writes, r.written, maxWrites)
	case ask.reads() && !ask.Continue: // the pages of a list are one list
		f.judgeLocked(asked, r, now)
		r.trail.rows = appendLast(r.trail.rows, r, maxSteps)
		if ask.Watch {
			r.trail.open[r] = true
		}
	}
	return r
}

// kept finds a value, or makes it. If there are limit of them, all are forgotten: what goes on is seen again.
func kept[V any](all map[string]*V, key string, limit int, make func() *V) *V {
	value, found := all[key]
	if !found {
		if len(all) == limit {
			clear(all)
		}
		value = make()
		all[key] = value
	}
	return value
}

// appendLast appends to the newest values, of which there are at most limit.
func appendLast[V any](all []V, value V, limit int) []V {
	if len(all) == limit {
		all = append(all[:0], all[1:]...)
	}
	return append(all, value)
}

// changes reports whether a write has changed its object.
func (w *write) changes() bool { return w.status/100 == 2 && (w.rv == "" || w.rv != w.before) }

// answers reports whether the client was given nothing since its last write but the result of that, just before it
// wrote this. A quick client writes before the lens has noted what made it write, so this is asked of times afterwards.
func (w *write) answers(last *write) bool {
	return last != nil && last.rv != "" && last.given.rv == last.rv && w.at.Sub(last.given.at) <= echoWithin
}

// giveLocked notes that a client was given an object at a time: in a frame, in a list, or by itself. The newest write
// of the client that had begun by then keeps it.
func (o *object) giveLocked(client, rv string, at time.Time) {
	if older(o.rv, rv) {
		o.rv = rv
	}
	for _, w := range slices.Backward(o.writes) {
		if w.client == client && !w.at.After(at) {
			if !at.Before(w.given.at) {
				w.given = given{at, rv}
			}
			return
		}
	}
}

// answered notes the header of the answer. retryAfter is what it says; 0: nothing.
func (f *findings) answered(r *request, status int, retryAfter time.Duration, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.status, r.lastFrame = status, now
	r.gone = status == http.StatusGone && r.Watch
	if status == http.StatusTooManyRequests {
		r.retryAfter = retryAfter
	}
	r.streams = r.Watch && r.reads() && (status == http.StatusOK || status == http.StatusSwitchingProtocols)
	f.showLocked(r)
}

// frame notes a frame of a watch.
func (f *findings) frame(r *request, event wiretap.Event, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := r.trail
	if t == nil {
		return
	}
	f.showLocked(r)
	if event.Type != "" { // it could be read
		f.tellLocked(r, probe.FrameWritten, probe.Record{Type: event.Type, Key: event.Key, RV: number(event.RV),
			Args: [4]int{event.Size}})
	}
	r.lastFrame, r.newest = now, cmp.Or(event.RV, r.newest)
	switch {
	case event.Type == "ERROR":
		r.gone = r.gone || event.Code == http.StatusGone
		return
	case event.RV == "":
		return
	case event.InitialEnd:
		r.initialEnd, t.listRV = true, event.RV
	}
	if r.resumable() && now.Sub(r.given.at) >= readTime {
		r.read, r.given = r.given.rv, given{now, event.RV}
	}
	if len(f.objects) > 0 {
		if o := f.objects[t.resource+" "+event.Key]; o != nil {
			o.giveLocked(t.client, event.RV, now)
		}
	}
}

// resumable reports whether versions from the frames of a watch are a place to resume from: those of a watch-list's
// first state come in no order.
func (r *request) resumable() bool { return !r.InitialEvents || r.initialEnd }

// end is the end of an exchange.
type end struct {
	Bytes int64
	RV    string // the version that a list or an object says of itself
	Cause string
}

// end notes the end of a request.
func (f *findings) end(r *request, e end, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := r.trail
	if t == nil {
		return
	}
	delete(f.running, r)
	r.cause, r.ended = e.Cause, now
	f.closeLocked(r, e)
	if r.reads() && !r.Watch && e.RV != "" {
		t.listRV, t.settled = e.RV, ""
		for key, o := range f.objects { // each object of the resource was given
			if strings.HasPrefix(key, t.resource+" ") {
				o.giveLocked(t.client, "", now)
			}
		}
	}
	switch {
	case r.Watch:
		delete(t.open, r)
		t.settle(r, now)
	case r.written != nil:
		f.wroteLocked(r, e, now)
	case r.reads() && !r.Continue && r.status == http.StatusOK:
		f.judgeLocked(listed, r, now)
	case r.Name != "" && r.status == http.StatusOK:
		if o := f.objects[r.one()]; o != nil {
			o.giveLocked(t.client, e.RV, now)
		}
	}
}

// wroteLocked notes the answer to a write.
func (f *findings) wroteLocked(r *request, e end, now time.Time) {
	o, w := f.objects[r.one()], r.written
	if o == nil {
		return // it was forgotten while the server was at work
	}
	w.status, w.rv = r.status, e.RV
	if older(o.rv, w.rv) {
		o.rv = w.rv
	}
	f.judgeLocked(wrote, r, now)
}

// readTime is how long a client may take until what was sent to it has surely been read, if its connection is not
// stuck.
const readTime = time.Second

// settle notes what the client has surely read when a watch ends.
func (t *trail) settle(r *request, now time.Time) {
	read := r.read
	if now.Sub(r.lastFrame) >= readTime && r.resumable() {
		read = r.newest
	}
	if r.stuckFor == 0 && older(t.settled, read) {
		t.settled = read
	}
}

// older reports whether version a is before b. Clients may compare versions of one resource since Kubernetes 1.35; ""
// is before any.
func older(a, b string) bool {
	m, errA := strconv.ParseUint(a, 10, 64)
	n, errB := strconv.ParseUint(b, 10, 64)
	return errB == nil && (a == "" || errA == nil && m < n)
}

// tick judges what only time tells, and shows the watches that are open in a log that does not know them yet.
func (f *findings) tick(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.running {
		f.showLocked(r)
		since := r.writing.Load()
		if waited := now.Sub(time.Unix(0, since)); r.streams && since != 0 && waited >= period {
			r.stuckFor = waited
			f.judgeLocked(full, r, now)
		}
	}
	for _, t := range f.trails {
		if len(t.rows) > 0 {
			f.judgeLocked(ticked, t.rows[len(t.rows)-1], now)
		}
	}
}

// judgeLocked asks each verdict of the moment.
func (f *findings) judgeLocked(m moment, r *request, now time.Time) {
	c := &judged{all: f, trail: r.trail, request: r, now: now}
	for i := range verdicts {
		v := &verdicts[i]
		if v.at != m {
			continue
		}
		c.key, c.seen = r.Ask.trail(), r.trail.times[v.id]+1
		sentence := v.find(c)
		if sentence == "" {
			continue
		}
		if r.trail.times[v.id] = c.seen; c.seen >= v.least {
			f.sayLocked(v, c, sentence)
		}
	}
}

// sayLocked adds a finding, or renews it.
func (f *findings) sayLocked(v *verdict, c *judged, sentence string) {
	key := v.id + "\x00" + c.key
	finding := f.said[key]
	if finding == nil {
		if len(f.said) == maxFindings {
			return
		}
		finding = &Finding{
			ID: v.id, Client: c.Client, Resource: c.Resource,
			Chapter: v.chapter, Incident: v.incident, Advice: v.advice, First: c.now,
		}
		f.said[key] = finding
	}
	finding.Last, finding.Sentence = c.now, short(c.Client)+" "+sentence
}

// Report is what the lens has seen.
type Report struct {
	Server   string    `json:"server"`
	Writes   bool      `json:"writes"`
	Requests uint64    `json:"requests"`
	Clients  int       `json:"clients"`
	Findings []Finding `json:"findings"` // the newest first
}

// report returns what was seen. The caller owns it.
func (f *findings) report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	report := Report{Requests: f.requests, Findings: []Finding{}}
	clients := map[string]bool{}
	for _, t := range f.trails {
		clients[t.client] = true
	}
	report.Clients = len(clients)
	for _, finding := range f.said {
		report.Findings = append(report.Findings, *finding)
	}
	slices.SortFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(b.First.Compare(a.First), cmp.Compare(a.Sentence, b.Sentence))
	})
	return report
}

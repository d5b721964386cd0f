package lens

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	storage "listwatch/chapters/01-storage"
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
	id          uint64 // the log calls its watcher "c" and this
	path, query string // see requestOf
	at          time.Time

	trail  *trail  // nil: the request is none of the API's, and nothing else is kept of it
	object *object // that it writes; nil: it writes none
	named  string  // what the log calls its resource; "" if the log names enough of them

	status    int
	lastFrame time.Time // or the header of the answer
	rv        string    // that the answer says of itself: of a list or an object
	cause     string    // why it ended
	ended     time.Time // zero: it has not

	retryAfter time.Duration // as a 429 said

	// Of a watch.
	streams    bool   // it has been answered
	newest     string // the newest version that the client was given
	given      given  // a frame, once a second; of a write: the newest that its client was given before its next one
	read       string // the version of the one before: it has surely been read if the connection was never full
	initialEnd bool
	gone       bool          // it was told that its version is too old
	stuckFor   time.Duration // the connection is full; 0: it never was
	// since when a piece is being written to the client, in nanoseconds of Unix time; 0: none is. Set by its exchange
	writing atomic.Int64

	before string // of a write: the newest version of the object that was seen before
}

// Finding is one habit of a client that does harm, in words.
type Finding struct {
	*verdict
	Client   string    `json:"client"`
	Resource string    `json:"resource"`
	Sentence string    `json:"sentence"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
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
	rv     string     // the newest that was seen
	writes []*request // the newest, oldest first
}

// begin notes that a request has come.
func (l *Lens) begin(ask Ask, path, query string) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	r := &request{Ask: ask, at: l.config.Clock.Now(), path: path, query: query, id: l.requests}
	if ask.Resource == "" {
		return r
	}
	r.trail = kept(l.trails, ask.trail(), maxTrails, func() *trail {
		return &trail{client: ask.Client, resource: ask.Resource, open: map[*request]bool{}, times: map[string]int{}}
	})
	l.running[r] = true
	if plural := ask.plural(); l.named[plural] || len(l.named) < maxNamed {
		l.named[plural], r.named = true, plural
	}
	l.tellLocked(r, probe.RequestReceived, probe.Record{Texts: r.texts("")})
	switch {
	case ask.writes() && ask.Resource != election:
		r.object = kept(l.objects, ask.one(), maxObjects, func() *object { return &object{} })
		r.before = r.object.rv
		r.object.writes = appendLast(r.object.writes, r, maxWrites)
	case ask.reads() && !ask.Continue: // the pages of a list are one list
		l.judgeLocked(asked, r)
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

// changes reports whether a write has ended, and has changed its object.
func (r *request) changes() bool {
	return !r.ended.IsZero() && r.status/100 == 2 && (r.rv == "" || r.rv != r.before)
}

// answers reports whether the client was given nothing since its last write but the result of that, just before it
// wrote this. A quick client writes before the lens has noted what made it write, so this is asked of times afterwards.
func (r *request) answers(last *request) bool {
	return last != nil && last.rv != "" && last.given.rv == last.rv && r.at.Sub(last.given.at) <= echoWithin
}

// giveLocked notes that a client was given an object at a time: in a frame, in a list, or by itself. The newest write
// of the client that had begun by then keeps it.
func (o *object) giveLocked(client, rv string, at time.Time) {
	if older(o.rv, rv) {
		o.rv = rv
	}
	for _, w := range slices.Backward(o.writes) {
		if w.Client == client && !w.at.After(at) {
			if !at.Before(w.given.at) {
				w.given = given{at, rv}
			}
			return
		}
	}
}

// frame notes a frame of a watch, which the client was given at a time.
func (l *Lens) frame(r *request, event wiretap.Event, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := r.trail
	if event.Type != "" { // it could be read
		l.tellLocked(r, probe.FrameWritten, probe.Record{Type: event.Type, Key: event.Key,
			RV: storage.ProbeVersion(event.RV), Args: [4]int{event.Size}})
	}
	r.lastFrame, r.newest = at, cmp.Or(event.RV, r.newest)
	switch {
	case event.Type == "ERROR":
		r.gone = r.gone || event.Code == http.StatusGone
		return
	case event.RV == "":
		return
	case event.InitialEnd:
		r.initialEnd, t.listRV = true, event.RV
	}
	if r.resumable() && at.Sub(r.given.at) >= readTime {
		r.read, r.given = r.given.rv, given{at, event.RV}
	}
	if o := l.objects[t.resource+" "+event.Key]; o != nil {
		o.giveLocked(t.client, event.RV, at)
	}
}

// resumable reports whether versions from the frames of a watch are a place to resume from: those of a watch-list's
// first state come in no order.
func (r *request) resumable() bool { return !r.InitialEvents || r.initialEnd }

// end notes the end of a request: its cause, the version that a list or an object says of itself, and the bytes of the
// answer.
func (l *Lens) end(r *request, cause, version string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, now := r.trail, l.config.Clock.Now()
	if t == nil {
		return
	}
	delete(l.running, r)
	r.cause, r.rv, r.ended = cause, version, now
	l.closeLocked(r, bytes)
	if r.reads() && !r.Watch && r.rv != "" {
		t.listRV, t.settled = r.rv, ""
		for key, o := range l.objects { // each object of the resource was given
			if strings.HasPrefix(key, t.resource+" ") {
				o.giveLocked(t.client, "", now)
			}
		}
	}
	switch {
	case r.Watch:
		delete(t.open, r)
		t.settle(r)
	case r.object != nil:
		if older(r.object.rv, r.rv) {
			r.object.rv = r.rv
		}
		l.judgeLocked(wrote, r)
		r.trail = nil // the object may be remembered for longer
	case r.reads() && !r.Continue && r.status == http.StatusOK:
		l.judgeLocked(listed, r)
	case r.Name != "" && r.status == http.StatusOK:
		if o := l.objects[r.one()]; o != nil {
			o.giveLocked(t.client, r.rv, now)
		}
	}
}

// readTime is how long a client may take until what was sent to it has surely been read, if its connection is not
// stuck.
const readTime = time.Second

// settle notes what the client has surely read when a watch ends.
func (t *trail) settle(r *request) {
	read := r.read
	if r.ended.Sub(r.lastFrame) >= readTime && r.resumable() {
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

// tick judges what only time tells.
func (l *Lens) tick(context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.config.Clock.Now()
	for r := range l.running {
		since := r.writing.Load()
		if waited := now.Sub(time.Unix(0, since)); r.streams && since != 0 && waited >= period {
			r.stuckFor = waited
			l.judgeLocked(full, r)
		}
	}
	for _, t := range l.trails {
		if len(t.rows) > 0 {
			l.judgeLocked(ticked, t.rows[len(t.rows)-1])
		}
	}
}

// judgeLocked asks each verdict of the occasion, and adds a finding for what it says, or renews it.
func (l *Lens) judgeLocked(m occasion, r *request) {
	c := &judged{lens: l, trail: r.trail, request: r, now: l.config.Clock.Now()}
	for i := range verdicts {
		v := &verdicts[i]
		if v.at != m {
			continue
		}
		c.key, c.seen = r.Ask.trail(), r.trail.times[v.ID]+1
		sentence := v.find(c)
		if sentence == "" {
			continue
		}
		if r.trail.times[v.ID] = c.seen; c.seen < v.least {
			continue
		}
		key := v.ID + "\x00" + c.key
		if l.said[key] == nil {
			if len(l.said) == maxFindings {
				continue
			}
			l.said[key] = &Finding{verdict: v, Client: c.Client, Resource: c.Resource, First: c.now}
		}
		l.said[key].Last, l.said[key].Sentence = c.now, short(c.Client)+" "+sentence
	}
}

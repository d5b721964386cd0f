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
	maxNamed    = 256 // resources with a name in the log: a recording may hold twice as many (fold.MaxResources)
)

// election is the resource that leaders renew all the time. The verdicts about controllers ignore it.
const election = "leases.coordination.k8s.io"

// request is one request, for the verdicts and the log.
type request struct {
	Ask
	id          uint64 // its watcher in the log is "c" and this
	path, query string // see requestOf
	at          time.Time

	trail  *trail  // nil: not a request to the API, of which nothing else is kept
	object *object // for a write; nil: it is none
	named  string  // its resource in the log; "": there are too many

	status    int
	lastFrame time.Time // or the header of the answer
	rv        string    // of the list or object in the answer
	cause     string    // the reason of its end
	ended     time.Time // zero: it is open

	retryAfter time.Duration // a 429 has it

	// Of a watch.
	streams    bool   // the answer has begun
	newest     string // the newest version that was sent
	given      given  // a frame, once a second; of a write: the newest object that was sent before the next write
	read       string // the version of the frame before: the client has read it if the connection was never full
	initialEnd bool
	gone       bool          // it got 410
	stuckFor   time.Duration // the time for which the connection was full; 0: never
	// when the exchange began to write a piece to the client, in Unix nanoseconds; 0: none
	writing atomic.Int64

	before string // in a write: the newest known version of the object before it
}

// Finding is one harmful habit of a client, in words.
type Finding struct {
	*verdict
	Client   string    `json:"client"`
	Resource string    `json:"resource"`
	Sentence string    `json:"sentence"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

// trail has the requests of one client for one resource and selector: those of one informer.
type trail struct {
	client, resource string

	rows  []*request        // the newest lists and watches, oldest first
	open  map[*request]bool // watches
	times map[string]int    // how often a verdict has matched, by id

	listRV  string // of the newest list; "" before the first
	settled string // the newest version that the client has surely read of its last watch
}

// given is a version that was sent to a client.
type given struct {
	at time.Time
	rv string
}

// object has the writes of one object.
type object struct {
	rv     string     // the newest known
	writes []*request // the newest, oldest first
}

// begin notes a new request.
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

// kept finds a value, or makes it. At the limit it drops all values: habits that continue are found again.
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

// answers reports whether a write follows just after the client received the result of its last write, and nothing
// else. A quick client writes before the lens has noted that receipt, so the verdict compares times afterwards.
func (r *request) answers(last *request) bool {
	return last != nil && last.rv != "" && last.given.rv == last.rv && r.at.Sub(last.given.at) <= echoWithin
}

// giveLocked notes a version that was sent to a client. It belongs to the client's newest write that had begun by then.
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

// frame notes a frame of a watch that was sent at a time.
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

// resumable reports whether a client may resume from the versions of a watch's frames: those of a watch-list's first
// state are unordered.
func (r *request) resumable() bool { return !r.InitialEvents || r.initialEnd }

// end notes the end of a request: its cause, the version of the list or object, and the bytes of the answer.
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
		for key, o := range l.objects { // the list had each object
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
		r.trail = nil // the object may outlive the trail
	case r.reads() && !r.Continue && r.status == http.StatusOK:
		l.judgeLocked(listed, r)
	case r.Name != "" && r.status == http.StatusOK:
		if o := l.objects[r.one()]; o != nil {
			o.giveLocked(t.client, r.rv, now)
		}
	}
}

// readTime is the time after which a client has surely read a frame, if its connection is not full.
const readTime = time.Second

// settle notes the newest version that the client has surely read of a watch that ends.
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

// tick runs the verdicts about time.
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

// judgeLocked runs each verdict of the occasion, and adds or renews a finding for its sentence.
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

package lens

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// Limits of the lens's memory.
const (
	maxTrails   = 512
	maxSteps    = 16 // lists and watches per trail
	maxFindings = 256
	maxNamed    = 256 // resources with a name in the log; a recording may have twice as many (fold.MaxResources)
)

// request holds the facts about one request that the verdicts and the log need.
type request struct {
	Ask
	id          uint64 // the watcher's name in the log is "c" and this number
	path, query string // without secrets, each cut to 200 bytes
	at          time.Time

	trail *trail // nil: the request is outside the API, so no verdict judges it
	named string // the resource's name in the log; "": there are too many

	status int
	rv     string    // the version of the list or object in the response
	cause  string    // the reason for the end
	ended  time.Time // zero: the request is open

	// Only for a watch.
	streams  bool          // the response has begun, with status 200 or 101
	gone     bool          // the watch got 410
	stuckFor time.Duration // time for which the connection was full; 0: never
	// The time at which the exchange began to write a piece to the client, in Unix nanoseconds; 0: it is not writing.
	writing atomic.Int64
}

// Finding describes one harmful habit of a client.
type Finding struct {
	*verdict
	Client   string    `json:"client"`
	Resource string    `json:"resource"`
	Sentence string    `json:"sentence"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

// trail holds the requests of one informer: those of one client for one resource, namespace and selector.
type trail struct {
	client string

	rows  []*request        // the newest lists and watches, oldest first
	open  map[*request]bool // open watches
	times map[string]int    // number of matches of each verdict so far, by its ID

	listRV string // the version of the newest list or watch-list; "" before the first
}

// begin writes a request to the log, judges a list or watch, and adds it to its client's trail. A request whose path is
// outside the API is only counted.
func (l *Lens) begin(ask Ask, path, query string) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	r := &request{Ask: ask, at: l.config.Clock.Now(), path: path, query: query, id: l.requests}
	if ask.Resource == "" {
		return r
	}
	if r.trail = l.trails[ask.trail()]; r.trail == nil {
		if len(l.trails) == maxTrails {
			clear(l.trails) // habits that continue will be found again
		}
		r.trail = &trail{client: ask.Client, open: map[*request]bool{}, times: map[string]int{}}
		l.trails[ask.trail()] = r.trail
	}
	l.running[r] = true
	if plural := ask.plural(); l.named[plural] || len(l.named) < maxNamed {
		l.named[plural], r.named = true, plural
	}
	l.tellLocked(r, probe.RequestReceived, probe.Record{Texts: r.texts("")})
	if ask.reads() && !ask.Continue { // the pages of a list count as one list
		l.judgeLocked(asked, r)
		r.trail.rows = append(r.trail.rows[max(0, len(r.trail.rows)-maxSteps+1):], r)
		if ask.Watch {
			r.trail.open[r] = true
		}
	}
	return r
}

// frame writes a readable frame of a watch to the log. It saves a 410 and the version of an initial state.
func (l *Lens) frame(r *request, event Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := r.trail
	if event.Type != "" { // the frame was readable
		l.tellLocked(r, probe.FrameWritten, probe.Record{Type: event.Type, Key: event.Key,
			RV: storage.ProbeVersion(event.RV), Args: [4]int{event.Size}})
	}
	switch {
	case event.Type == "ERROR":
		r.gone = r.gone || event.Code == http.StatusGone
	case event.InitialEnd && event.RV != "":
		t.listRV = event.RV
	}
}

// end writes the end of a request to the log, with the reason, the version and the size of the response. It updates the
// trail, and judges the first page of a list.
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
		t.listRV = r.rv
	}
	switch {
	case r.Watch:
		delete(t.open, r)
	case r.reads() && !r.Continue && r.status == http.StatusOK:
		l.judgeLocked(listed, r)
	}
}

// older reports whether version a is before b; "" is before every number. It returns false for texts that are no
// numbers. Since Kubernetes 1.35, clients may compare versions of one resource.
func older(a, b string) bool {
	m, errA := strconv.ParseUint(a, 10, 64)
	n, errB := strconv.ParseUint(b, 10, 64)
	return errB == nil && (a == "" || errA == nil && m < n)
}

// tick runs the verdicts for the occasions full and ticked.
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

// judgeLocked runs the verdicts of an occasion, and records a finding for each verdict with enough matches.
func (l *Lens) judgeLocked(m occasion, r *request) {
	c := &judged{lens: l, trail: r.trail, request: r, now: l.config.Clock.Now()}
	for i := range verdicts {
		v := &verdicts[i]
		if v.at != m {
			continue
		}
		c.seen = r.trail.times[v.ID] + 1
		sentence := v.find(c)
		if sentence == "" {
			continue
		}
		if r.trail.times[v.ID] = c.seen; c.seen < v.least {
			continue
		}
		key := v.ID + "\x00" + r.Ask.trail()
		if l.said[key] == nil {
			if len(l.said) == maxFindings {
				continue
			}
			l.said[key] = &Finding{verdict: v, Client: c.Client, Resource: c.Resource, First: c.now}
		}
		l.said[key].Last, l.said[key].Sentence = c.now, short(c.Client)+" "+sentence
	}
}

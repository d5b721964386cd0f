package lens

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"listwatch/internal/play/wiretap"
)

// Bounds of what is kept.
const (
	maxHistories = 512
	maxFindings  = 256
	maxWritten   = 64  // objects of one history
	maxRows      = 200 // requests that are shown
	maxFrames    = 8   // that are shown of a watch
	maxGivens    = 64
)

// Row is a request as it is shown. The pages of one list are one row.
type Row struct {
	Request   uint64    `json:"request"`
	At        time.Time `json:"at"`
	Ask       Ask       `json:"ask"`
	Status    int       `json:"status"`
	Pages     int       `json:"pages"`
	Bytes     int64     `json:"bytes"`
	FirstByte int64     `json:"firstByte"` // milliseconds
	Frames    int       `json:"frames"`
	Bookmarks int       `json:"bookmarks"`
	Newest    string    `json:"newest"` // the newest version that the client was given
	Took      int64     `json:"took"`   // milliseconds; of a request that has not ended: so far
	End       string    `json:"end"`    // why it ended; "" if it has not
	// milliseconds from its end to the next request of the same history; -1: there is none yet
	Next int64   `json:"next"`
	Last []Frame `json:"last"` // the newest frames of a watch

	ended  time.Time
	framed int64 // bytes of the frames so far
}

// Frame is one frame of a watch as it is shown.
type Frame struct {
	Type string `json:"type"`
	Key  string `json:"key"`
	RV   string `json:"rv"`
	Size int    `json:"size"` // bytes
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

// View is what is shown, the newest first.
type View struct {
	Requests int64     `json:"requests"`
	Frames   int64     `json:"frames"`
	Findings []Finding `json:"findings"`
	Clients  int       `json:"clients"`
	Rows     []Row     `json:"rows"`
}

// findings keeps what clients did, and judges it by [rules]. What it keeps is bounded in every respect. Its methods,
// and those of its requests, may be called from any goroutine; times must not go back.
type findings struct {
	mu        sync.Mutex // guards all fields, and everything they lead to; innermost
	histories map[string]*history
	rows      []*Row // oldest first
	said      map[string]*Finding
	frames    int64
	requests  int64
}

func newFindings() *findings {
	return &findings{histories: map[string]*history{}, said: map[string]*Finding{}}
}

// history is what is remembered of the requests that belong together: those of one client for one resource with one
// selector. These are the facts that [rules] judge.
type history struct {
	client string
	last   time.Time // when the newest request came
	ended  *Row      // of the newest request that has ended, while no next one has come
	pages  *Row      // of the list whose next page may come

	watches  map[*request]bool   // that are open
	together int                 // of them, those that were open for togetherFor at the last tick
	written  map[string]*written // by name
	times    map[string]int      // how often a rule has seen what it looks for, by its id

	lists     []time.Time   // the newest lists at "" in a row, without a watch
	listRV    string        // of the newest list; "" before the first
	givens    []given       // the newest versions from frames
	settled   string        // the newest version that the client has surely read, at the end of its newest watch
	stuckFor  time.Duration // the connection of the newest watch was full; 0: it was not
	gone      string        // the version that was answered with 410; "" if a list came since
	goneBlind bool          // that watch asked for no bookmarks
	goneAt    time.Time
	retryAt   time.Time // a 429 has said: not before
	retryIn   time.Duration
}

// given is a version that was sent to a client.
type given struct {
	at time.Time
	rv string
}

// written is how often an object was written within writesWithin.
type written struct {
	first time.Time
	n     int
}

// request is one request.
type request struct {
	findings *findings // set by begin, never changed

	// Guarded by findings.mu.
	ask        *Ask
	row        *Row
	history    *history // nil: the request is none of the API's, and nothing is kept of it
	at         time.Time
	answeredOK bool // with 200
	initialEnd bool
	lastFrame  time.Time // or the header of the answer
}

// begin notes that a request has come.
func (f *findings) begin(id uint64, ask Ask, now time.Time) *request {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	r := &request{findings: f, ask: &ask, at: now}
	if ask.Resource == "" {
		return r
	}
	h := f.historyLocked(&ask, now)
	r.history, r.row = h, h.pages
	if !ask.Continue || r.row == nil {
		r.row = &Row{Request: id, At: now, Ask: ask, Next: -1}
		f.rows = appendLast(f.rows, r.row, maxRows)
	}
	if h.ended != nil {
		h.ended.Next = now.Sub(h.ended.ended).Milliseconds()
		h.ended = nil
	}
	switch {
	case ask.writes():
		h.write(ask.Name, now)
		f.judgeLocked(wrote, h, r, now)
	case ask.reads():
		f.judgeLocked(asked, h, r, now)
		h.read(r)
	}
	return r
}

// historyLocked finds a history, or makes room for it by forgetting the one that has been quiet longest. The caller
// holds f.mu.
func (f *findings) historyLocked(ask *Ask, now time.Time) *history {
	key := ask.history()
	h := f.histories[key]
	if h == nil {
		if len(f.histories) == maxHistories {
			delete(f.histories, oldest(f.histories, func(h *history) time.Time { return h.last }))
		}
		h = &history{client: ask.Client, watches: map[*request]bool{}, written: map[string]*written{},
			times: map[string]int{}}
		f.histories[key] = h
	}
	h.last = now
	return h
}

// oldest returns the key of the value whose time is the earliest.
func oldest[V any](all map[string]V, at func(V) time.Time) string {
	return slices.MinFunc(slices.Collect(maps.Keys(all)), func(a, b string) int {
		return at(all[a]).Compare(
			at(all[b]))
	})
}

// appendLast appends to the newest values, of which there are at most limit.
func appendLast[V any](all []V, value V, limit int) []V {
	if len(all) == limit {
		all = append(all[:0], all[1:]...)
	}
	return append(all, value)
}

// write counts a write to an object.
func (h *history) write(name string, now time.Time) {
	w := h.written[name]
	if w == nil || now.Sub(w.first) > writesWithin {
		if w == nil && len(h.written) == maxWritten {
			delete(h.written, oldest(h.written, func(w *written) time.Time { return w.first }))
		}
		w = &written{first: now}
		h.written[name] = w
	}
	w.n++
}

// read notes that a list or a watch was asked for.
func (h *history) read(r *request) {
	h.retryAt = time.Time{}
	if r.ask.Watch {
		h.watches[r] = true
	}
	if r.ask.Watch || r.ask.Version != "" {
		h.lists = nil
	}
	if r.ask.state() && !r.ask.Continue || h.jumps(r.ask) {
		h.gone = ""
		delete(h.times, staleAgain)
	}
}

// answered notes the header of the answer. retryAfter is that of a 429; 0: it says nothing.
func (r *request) answered(status int, retryAfter time.Duration, now time.Time) {
	r.findings.mu.Lock()
	defer r.findings.mu.Unlock()
	if r.history == nil {
		return
	}
	r.row.Status, r.answeredOK, r.lastFrame = status, status == http.StatusOK, now
	switch {
	case status == http.StatusGone && r.ask.Watch:
		r.history.isGone(r.ask, now)
	case status == http.StatusTooManyRequests:
		r.history.retryIn, r.history.retryAt = retryAfter, now.Add(retryAfter)
	}
}

// isGone notes that a watch was told that its version is too old.
func (h *history) isGone(ask *Ask, now time.Time) {
	if h.gone != ask.Version {
		delete(h.times, staleAgain)
		h.goneAt = now
	}
	h.gone, h.goneBlind = ask.Version, !ask.Bookmarks
}

// frame notes a frame of a watch.
func (r *request) frame(event wiretap.Event, now time.Time) {
	f, h := r.findings, r.history
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames++
	if h == nil {
		return
	}
	r.lastFrame = now
	r.row.Frames++
	r.row.framed += int64(event.Size)
	r.row.Newest = cmp.Or(event.RV, r.row.Newest)
	if event.Type == "BOOKMARK" {
		r.row.Bookmarks++
	}
	r.row.Last = appendLast(r.row.Last, Frame{Type: event.Type, Key: event.Key, RV: event.RV, Size: event.Size},
		maxFrames)
	switch {
	case event.Type == "ERROR" && event.Code == http.StatusGone:
		h.isGone(r.ask, now)
	case event.Type == "ERROR" || event.RV == "":
		return
	case event.InitialEnd:
		r.initialEnd = true
		h.listRV = event.RV
	}
	if event.Type != "ERROR" && (!r.ask.InitialEvents || r.initialEnd) {
		h.givens = appendLast(h.givens, given{now, event.RV}, maxGivens)
	}
}

// stuck notes that the client has not read its watch for so long.
func (r *request) stuck(waited time.Duration, now time.Time) {
	f := r.findings
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.history != nil {
		r.history.stuckFor = waited
		f.judgeLocked(stuck, r.history, r, now)
	}
}

// end is how a request ended.
type end struct {
	Status    int
	Bytes     int64
	FirstByte time.Duration
	List      wiretap.ListHead
	Cause     string
}

// end notes the end of a request.
func (r *request) end(e end, now time.Time) {
	f, h, row := r.findings, r.history, r.row
	f.mu.Lock()
	defer f.mu.Unlock()
	if h == nil {
		return
	}
	row.Bytes += e.Bytes
	if row.Pages++; row.Pages == 1 {
		row.FirstByte = e.FirstByte.Milliseconds()
	}
	row.Status, row.Took, row.End, row.ended = e.Status, now.Sub(row.At).Milliseconds(), e.Cause, now
	h.ended, h.pages = row, nil
	if e.List.Continue {
		h.pages = row
	}
	if e.List.RV != "" {
		row.Newest = e.List.RV
		h.listRV, h.givens, h.settled = e.List.RV, nil, ""
	}
	switch {
	case r.ask.Watch:
		delete(h.watches, r)
		h.settle(now)
		f.judgeLocked(watched, h, r, now)
	case r.ask.reads() && e.Status == http.StatusOK && !r.ask.Continue && r.ask.Version == "":
		h.lists = appendLast(h.lists, r.at, minPolls)
		f.judgeLocked(listed, h, r, now)
	}
}

// readTime is how long a client may take until what was sent to it has surely been read, if its connection is not
// stuck.
const readTime = time.Second

// settle notes what the client has surely read when a watch ends.
func (h *history) settle(now time.Time) {
	for _, each := range h.givens {
		if h.stuckFor == 0 && now.Sub(each.at) >= readTime && older(h.settled, each.rv) {
			h.settled = each.rv
		}
	}
	h.stuckFor = 0
}

// older reports whether version a is before b. Clients may compare versions of one resource since Kubernetes 1.35; ""
// is before any.
func older(a, b string) bool {
	m, errA := strconv.ParseUint(a, 10, 64)
	n, errB := strconv.ParseUint(b, 10, 64)
	return errB == nil && (a == "" || errA == nil && m < n)
}

// tick judges what only time tells.
func (f *findings) tick(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.histories {
		h.together = 0
		for r := range h.watches {
			if r.answeredOK && now.Sub(r.at) >= togetherFor {
				h.together++
			}
		}
		for r := range h.watches {
			f.judgeLocked(ticked, h, r, now)
		}
	}
}

// judgeLocked asks each rule of the moment. The caller holds f.mu.
func (f *findings) judgeLocked(m moment, h *history, r *request, now time.Time) {
	c := &judged{history: h, request: r, ask: r.ask, now: now}
	for i := range rules {
		if c.rule = &rules[i]; c.rule.at&m == 0 {
			continue
		}
		if sentence := c.rule.find(c); sentence != "" {
			f.sayLocked(c, sentence)
		}
	}
}

// sayLocked adds a finding, or renews it. The caller holds f.mu.
func (f *findings) sayLocked(c *judged, sentence string) {
	key := strings.Join([]string{c.rule.id, c.ask.history()}, "\x00")
	finding := f.said[key]
	if finding == nil {
		if len(f.said) == maxFindings {
			return
		}
		finding = &Finding{
			ID: c.rule.id, Client: c.ask.Client, Resource: c.ask.Resource,
			Chapter: c.rule.chapter, Incident: c.rule.incident, Advice: c.rule.advice, First: c.now,
		}
		f.said[key] = finding
	}
	finding.Last = c.now
	finding.Sentence = short(c.ask.Client) + " " + sentence
}

// view returns what is shown. The caller owns it.
func (f *findings) view(now time.Time) View {
	f.mu.Lock()
	defer f.mu.Unlock()
	view := View{Requests: f.requests, Frames: f.frames, Findings: []Finding{}, Rows: []Row{}}
	clients := map[string]bool{}
	for _, h := range f.histories {
		clients[h.client] = true
	}
	view.Clients = len(clients)
	for _, finding := range f.said {
		view.Findings = append(view.Findings, *finding)
	}
	slices.SortFunc(view.Findings, func(a, b Finding) int {
		return cmp.Or(b.First.Compare(a.First), cmp.Compare(a.Sentence, b.Sentence))
	})
	for _, row := range slices.Backward(f.rows) {
		shown := *row
		shown.Last = slices.Clone(row.Last)
		if shown.End == "" {
			shown.Took, shown.Bytes = now.Sub(row.At).Milliseconds(), row.framed
		}
		view.Rows = append(view.Rows, shown)
	}
	return view
}

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
	maxTrails   = 512
	maxSteps    = 16 // rows of one trail
	maxObjects  = 512
	maxWrites   = 64 // of one object
	maxFindings = 256
	maxRows     = 200 // requests that are shown
	maxGivens   = 64
	maxNamed    = 256 // resources that the log names: a recording may hold twice as many (fold.MaxResources)
)

// Row is one request: as the page shows it, and as the verdicts judge it. The pages of one list are one row.
type Row struct {
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
	// milliseconds from its end to the next request of the same trail; -1: there is none yet
	Next int64 `json:"next"`

	trail      *trail // nil: the request is none of the API's, and nothing else is kept of it
	written    *write // nil: it writes no object
	named      string // what the log calls its resource; "" if the log names enough of them
	ended      time.Time
	framed     int64 // bytes of the frames so far
	gone       bool  // a watch that was told that its version is too old
	initialEnd bool
	lastFrame  time.Time     // or the header of the answer
	retryAfter time.Duration // as a 429 said
	stuckFor   time.Duration // the connection is full; 0: it never was
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

// findings keeps what clients did, and judges it by [verdicts]. What it keeps is bounded in every respect. Its methods
// may be called from any goroutine; times must not go back.
type findings struct {
	mu       sync.Mutex // guards all fields, and everything they lead to; innermost
	trails   map[string]*trail
	objects  map[string]*object // that were written
	rows     []*Row             // oldest first
	said     map[string]*Finding
	named    map[string]bool // resources that the log names
	frames   int64
	requests int64
}

func newFindings() *findings {
	return &findings{trails: map[string]*trail{}, objects: map[string]*object{}, said: map[string]*Finding{},
		named: map[string]bool{}}
}

// trail is what one client did with one resource and one selector: the work of one informer.
type trail struct {
	client, resource string

	last  time.Time      // when the newest request came
	rows  []*Row         // the newest lists and watches, oldest first
	open  map[*Row]bool  // watches
	times map[string]int // how often a verdict has found what it looks for, by its id
	ended *Row           // the newest request that has ended, while no next one has come
	pages *Row           // the list whose next page may come

	listRV  string  // of the newest list; "" before the first
	givens  []given // the newest versions from frames
	settled string  // the newest version that the client has surely read, at the end of its newest watch
}

// given is a version that was sent to a client.
type given struct {
	at time.Time
	rv string
}

// object is what is remembered of an object that clients write.
type object struct {
	last   time.Time
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
func (f *findings) begin(ask Ask, now time.Time) *Row {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	if ask.Resource == "" {
		return &Row{}
	}
	t := kept(f.trails, ask.trail(), maxTrails, func(t *trail) time.Time { return t.last }, func() *trail {
		return &trail{client: ask.Client, resource: ask.Resource, open: map[*Row]bool{}, times: map[string]int{}}
	})
	t.last = now
	row := t.pages
	next := ask.Continue && row != nil
	if !next {
		row = &Row{At: now, Ask: ask, Next: -1, trail: t, named: f.nameLocked(ask.plural())}
		f.rows = appendLast(f.rows, row, maxRows)
	}
	if t.ended != nil {
		t.ended.Next = now.Sub(t.ended.ended).Milliseconds()
		t.ended = nil
	}
	switch {
	case ask.writes() && !ask.election():
		row.written = f.writeLocked(&ask, now)
	case ask.reads() && !next:
		f.judgeLocked(asked, row, now)
		t.rows = appendLast(t.rows, row, maxSteps)
		if ask.Watch {
			t.open[row] = true
		}
	}
	return row
}

// nameLocked returns what the log calls a resource.
func (f *findings) nameLocked(resource string) string {
	if len(f.named) < maxNamed {
		f.named[resource] = true
	}
	if !f.named[resource] {
		return ""
	}
	return resource
}

// kept finds a value, or makes it; then the one whose time is the earliest is forgotten if there are limit others.
func kept[V any](all map[string]V, key string, limit int, at func(V) time.Time, make func() V) V {
	value, found := all[key]
	if !found {
		if len(all) == limit {
			delete(all, slices.MinFunc(slices.Collect(maps.Keys(all)), func(a, b string) int {
				return at(all[a]).Compare(at(all[b]))
			}))
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

// writeLocked notes that an object is being written.
func (f *findings) writeLocked(ask *Ask, now time.Time) *write {
	o := kept(f.objects, ask.object(), maxObjects, func(o *object) time.Time { return o.last },
		func() *object { return &object{} })
	o.last = now
	w := &write{client: ask.Client, sub: ask.Subresource, at: now, before: o.rv}
	o.writes = appendLast(o.writes, w, maxWrites)
	return w
}

// changes reports whether a write has changed its object.
func (w *write) changes() bool { return w.status/100 == 2 && (w.rv == "" || w.rv != w.before) }

// answers reports whether the client was given nothing since its last write but the result of that, just before it
// wrote this. A quick client writes before the lens has noted what made it write, so this is asked of times afterwards.
func (w *write) answers(last *write) bool {
	return last != nil && last.rv != "" && last.given.rv == last.rv && w.at.Sub(last.given.at) <= echoWithin
}

// lastOf returns the newest write of a client that began no later than at; nil if it has none.
func (o *object) lastOf(client string, at time.Time) *write {
	for _, w := range slices.Backward(o.writes) {
		if w.client == client && !w.at.After(at) {
			return w
		}
	}
	return nil
}

// giveLocked notes that a client was given an object at a time: in a frame, in a list, or by itself.
func (o *object) giveLocked(client, rv string, at time.Time) {
	if older(o.rv, rv) {
		o.rv = rv
	}
	if w := o.lastOf(client, at); w != nil && !at.Before(w.given.at) {
		w.given = given{at, rv}
	}
}

// answered notes the header of the answer. retryAfter is that of a 429; 0: it says nothing.
func (f *findings) answered(row *Row, status int, retryAfter time.Duration, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row.Status, row.lastFrame = status, now
	row.gone = status == http.StatusGone && row.Ask.Watch
	row.retryAfter = 0
	if status == http.StatusTooManyRequests {
		row.retryAfter = retryAfter
	}
}

// frame notes a frame of a watch.
func (f *findings) frame(row *Row, event wiretap.Event, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames++
	t := row.trail
	if t == nil {
		return
	}
	row.lastFrame = now
	row.Frames++
	row.framed += int64(event.Size)
	row.Newest = cmp.Or(event.RV, row.Newest)
	if event.Type == "BOOKMARK" {
		row.Bookmarks++
	}
	switch {
	case event.Type == "ERROR":
		row.gone = row.gone || event.Code == http.StatusGone
		return
	case event.RV == "":
		return
	case event.InitialEnd:
		row.initialEnd, t.listRV = true, event.RV
	}
	if !row.Ask.InitialEvents || row.initialEnd {
		t.givens = appendLast(t.givens, given{now, event.RV}, maxGivens)
	}
	if len(f.objects) > 0 {
		if o := f.objects[t.resource+"\x00"+event.Key]; o != nil {
			o.giveLocked(t.client, event.RV, now)
		}
	}
}

// stuck notes that the client has not read its watch for so long.
func (f *findings) stuck(row *Row, waited time.Duration, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if row.trail != nil {
		row.stuckFor = waited
		f.judgeLocked(full, row, now)
	}
}

// end is the end of an exchange.
type end struct {
	Status    int
	Bytes     int64
	FirstByte time.Duration
	Head      wiretap.Head // what a list or an object says of itself
	Cause     string
}

// end notes the end of a request.
func (f *findings) end(row *Row, e end, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := row.trail
	if t == nil {
		return
	}
	row.Pages++
	row.Bytes += e.Bytes
	if row.Pages == 1 {
		row.FirstByte = e.FirstByte.Milliseconds()
	}
	row.Status, row.Took, row.End, row.ended = e.Status, now.Sub(row.At).Milliseconds(), e.Cause, now
	t.ended, t.pages = row, nil
	if e.Head.Continue {
		t.pages = row
	}
	row.Newest = cmp.Or(e.Head.RV, row.Newest)
	if row.Ask.reads() && !row.Ask.Watch && e.Head.RV != "" {
		t.listRV, t.givens, t.settled = e.Head.RV, nil, ""
		f.listedLocked(t, now)
	}
	switch {
	case row.Ask.Watch:
		delete(t.open, row)
		t.settle(row, now)
		f.judgeLocked(watched, row, now)
	case row.written != nil:
		f.wroteLocked(row, e, now)
	case row.Ask.reads() && e.Status == http.StatusOK && row.Pages == 1:
		f.judgeLocked(listed, row, now)
	case row.Ask.Name != "" && e.Status == http.StatusOK:
		if o := f.objects[row.Ask.object()]; o != nil {
			o.giveLocked(t.client, e.Head.RV, now)
		}
	}
}

// listedLocked notes that a client was given every object of a resource.
func (f *findings) listedLocked(t *trail, now time.Time) {
	for key, o := range f.objects {
		if strings.HasPrefix(key, t.resource+"\x00") {
			o.giveLocked(t.client, "", now)
		}
	}
}

// wroteLocked notes the answer to a write.
func (f *findings) wroteLocked(row *Row, e end, now time.Time) {
	o, w := f.objects[row.Ask.object()], row.written
	if o == nil {
		return // it was forgotten while the server was at work
	}
	w.status, w.rv = e.Status, e.Head.RV
	if older(o.rv, w.rv) {
		o.rv = w.rv
	}
	f.judgeLocked(wrote, row, now)
}

// readTime is how long a client may take until what was sent to it has surely been read, if its connection is not
// stuck.
const readTime = time.Second

// settle notes what the client has surely read when a watch ends.
func (t *trail) settle(row *Row, now time.Time) {
	for _, each := range t.givens {
		if row.stuckFor == 0 && now.Sub(each.at) >= readTime && older(t.settled, each.rv) {
			t.settled = each.rv
		}
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
func (f *findings) tick(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.trails {
		if len(t.rows) > 0 {
			f.judgeLocked(ticked, t.rows[len(t.rows)-1], now)
		}
	}
}

// judgeLocked asks each verdict of the moment.
func (f *findings) judgeLocked(m moment, row *Row, now time.Time) {
	c := &judged{all: f, trail: row.trail, row: row, ask: &row.Ask, now: now}
	for i := range verdicts {
		v := &verdicts[i]
		if v.at&m == 0 {
			continue
		}
		c.key, c.seen = row.Ask.trail(), row.trail.times[v.id]+1
		sentence := v.find(c)
		if sentence == "" {
			continue
		}
		if row.trail.times[v.id] = c.seen; c.seen >= v.least {
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
			ID: v.id, Client: c.ask.Client, Resource: c.ask.Resource,
			Chapter: v.chapter, Incident: v.incident, Advice: v.advice, First: c.now,
		}
		f.said[key] = finding
	}
	finding.Last, finding.Sentence = c.now, short(c.ask.Client)+" "+sentence
}

// view returns what is shown. The caller owns it.
func (f *findings) view(now time.Time) View {
	f.mu.Lock()
	defer f.mu.Unlock()
	view := View{Requests: f.requests, Frames: f.frames, Findings: []Finding{}, Rows: []Row{}}
	clients := map[string]bool{}
	for _, t := range f.trails {
		clients[t.client] = true
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
		if shown.End == "" {
			shown.Took, shown.Bytes = now.Sub(row.At).Milliseconds(), row.framed
		}
		view.Rows = append(view.Rows, shown)
	}
	return view
}

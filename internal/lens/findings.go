package lens

import (
	"strconv"
	"time"
)

// Bounds of what the findings keep.
const (
	maxHistories = 512
	maxOpen      = 4096 // requests that have not ended
	maxFindings  = 256
	maxWritten   = 512 // objects
	maxRows      = 200 // requests that are shown
	nGivens      = 64
)

// Row is a request as it is shown: the pages of one list are one row.
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
	Newest    string    `json:"newest"` // the newest version it was given
	MaxLag    int64     `json:"maxLag"` // milliseconds
	Lost      int64     `json:"lost"`   // bytes that passed unseen
	Took      int64     `json:"took"`   // milliseconds; of a request that has not ended: so far
	End       string    `json:"end"`    // why it ended; "" if it has not
	Next      int64     `json:"next"`   // milliseconds from its end to the next request of the same history; -1: there is none yet
	Last      []Frame   `json:"last"`   // the newest frames of a watch

	ended  time.Time
	framed int64 // bytes of the frames so far
}

// Frame is one frame of a watch as it is shown.
type Frame struct {
	Type string `json:"type"`
	Key  string `json:"key"`
	RV   string `json:"rv"`
	Size int    `json:"size"`
	Lag  int64  `json:"lag"` // milliseconds
}

const maxFrames = 8 // that are shown of a watch

// open is a request that has not ended.
type open struct {
	ask        Ask
	row        *Row // nil: it is not shown
	history    *history
	at         time.Time
	answered   bool // with 200
	initialEnd bool
	lastFrame  time.Time // or the header of the answer
}

// given is a version that was handed to a client.
type given struct {
	at time.Time
	rv string
}

// history is what is remembered of the requests that belong together: one client, one resource, one selector.
type history struct {
	last    time.Time // of its requests
	ask     Ask       // of the newest
	row     *Row      // of the newest that has ended, while no next one has come
	listRow *Row      // of the list whose next page may come

	watches map[uint64]*open

	lists     []time.Time // the newest lists at "" in a row, without a watch
	listRV    string      // of the newest list; "" before the first
	givens    []given     // the newest versions from frames
	settled   string      // the newest version that the client has surely read, at the end of its newest watch
	gone      string      // the version that was answered with 410; "" if a list came since
	goneBlind bool        // that watch asked for no bookmarks
	goneAt    time.Time
	again     int       // how often gone was asked for again
	relists   int       // after 410s of watches without bookmarks
	retryAt   time.Time // not before, a 429 has said
	retryIn   time.Duration
	early     int // requests before retryAt
	noVersion int // watches at "" with no list before them
	tweaked   int // watches at "" or "0" after a list
	backward  int // watches from before what was settled
	endless   int // watch-lists that ended without their bookmark
	stuckFor  time.Duration
}

func (t *history) give(at time.Time, rv string) {
	if len(t.givens) == nGivens {
		t.givens = append(t.givens[:0], t.givens[1:]...)
	}
	t.givens = append(t.givens, given{at, rv})
}

// readTime is how long a client may take until what was sent to it has surely been read, if its connection is not stuck.
const readTime = time.Second

// settle remembers what the client has surely read.
func (t *history) settle(now time.Time) {
	for _, each := range t.givens {
		if now.Sub(each.at) >= readTime && older(t.settled, each.rv) {
			t.settled = each.rv
		}
	}
}

// older reports whether version a is before b. Clients may compare versions of one resource since Kubernetes 1.35; "" is before any.
func older(a, b string) bool {
	m, errA := strconv.ParseUint(a, 10, 64)
	n, errB := strconv.ParseUint(b, 10, 64)
	return errB == nil && (a == "" || errA == nil && m < n)
}

// Findings is the fold over the records of a lens. It keeps a bounded number of clients, requests and findings; it is not safe for
// concurrent use.
type Findings struct {
	open      map[uint64]*open
	histories map[string]*history
	written   map[string]*written
	rows      []*Row // oldest first
	findings  map[string]*Finding
	frames    int64
	requests  int64
}

// NewFindings returns the fold of nothing.
func NewFindings() *Findings {
	return &Findings{open: map[uint64]*open{}, histories: map[string]*history{}, written: map[string]*written{}, findings: map[string]*Finding{}}
}

// Apply folds one record.
func (v *Findings) Apply(r Record) {
	if r.What == Asked {
		v.asked(r)
		return
	}
	if r.What == Ticked {
		v.ticked(r.At)
		return
	}
	o := v.open[r.Request]
	if o == nil {
		return
	}
	switch r.What {
	case Answered:
		v.answered(o, r)
	case Framed:
		v.framed(o, r)
	case Stuck:
		v.stuck(o, r)
	case Ended:
		v.ended(o, r)
		delete(v.open, r.Request)
	}
}

func (v *Findings) asked(r Record) {
	v.requests++
	if r.Ask.Resource == "" || len(v.open) == maxOpen {
		return
	}
	o := &open{ask: r.Ask, at: r.At, history: v.history(&r.Ask, r.At)}
	v.open[r.Request] = o
	o.row = v.row(o, r)
	if t := o.history; t.row != nil {
		t.row.Next = r.At.Sub(t.row.ended).Milliseconds()
		t.row = nil
	}
	switch {
	case r.Ask.writes():
		v.wrote(r)
	case r.Ask.reads():
		v.asksForMore(o, r.Request, r.At)
	}
}

// history finds a history, or makes room for it by forgetting the one that has been quiet longest.
func (v *Findings) history(ask *Ask, now time.Time) *history {
	key := ask.history()
	t := v.histories[key]
	if t == nil {
		if len(v.histories) == maxHistories {
			oldest := key
			for each, other := range v.histories {
				if oldest == key || other.last.Before(v.histories[oldest].last) {
					oldest = each
				}
			}
			delete(v.histories, oldest)
		}
		t = &history{watches: map[uint64]*open{}}
		v.histories[key] = t
	}
	t.last, t.ask = now, *ask
	return t
}

// row begins a row, or finds that of the list whose next page is asked for.
func (v *Findings) row(o *open, r Record) *Row {
	if o.ask.Continue && o.history.listRow != nil {
		return o.history.listRow
	}
	row := &Row{Request: r.Request, At: r.At, Ask: r.Ask, Next: -1}
	if len(v.rows) == maxRows {
		v.rows = append(v.rows[:0], v.rows[1:]...)
	}
	v.rows = append(v.rows, row)
	return row
}

func (v *Findings) answered(o *open, r Record) {
	o.row.Status, o.answered, o.lastFrame = r.Status, r.Status == 200, r.At
	switch {
	case r.Status == 410 && o.ask.Watch:
		o.history.isGone(o, r.At)
	case r.Status == 429:
		o.history.retryIn = r.RetryAfter
		o.history.retryAt = r.At.Add(r.RetryAfter)
	}
}

// isGone remembers that a watch was told that its version is too old.
func (t *history) isGone(o *open, now time.Time) {
	if t.gone != o.ask.Version {
		t.again = 0
	}
	t.gone, t.goneBlind = o.ask.Version, !o.ask.Bookmarks
	if t.again == 0 {
		t.goneAt = now
	}
}

func (v *Findings) framed(o *open, r Record) {
	v.frames++
	o.lastFrame = r.At
	o.row.frame(r)
	t, event := o.history, r.Event
	switch {
	case event.Type == "ERROR":
		if event.Code == 410 {
			t.isGone(o, r.At)
		}
		return
	case event.RV == "":
		return
	case event.InitialEnd:
		o.initialEnd = true
		t.listRV = event.RV
	}
	if !o.ask.InitialEvents || o.initialEnd {
		t.give(r.At, event.RV)
	}
}

// frame shows a frame in a row.
func (row *Row) frame(r Record) {
	row.Frames++
	row.framed += int64(r.Event.Size)
	if r.Event.Type == "BOOKMARK" {
		row.Bookmarks++
	}
	if r.Event.RV != "" {
		row.Newest = r.Event.RV
	}
	row.MaxLag = max(row.MaxLag, r.Lag.Milliseconds())
	if len(row.Last) == maxFrames {
		row.Last = append(row.Last[:0], row.Last[1:]...)
	}
	row.Last = append(row.Last, Frame{Type: r.Event.Type, Key: bound(r.Event.Key), RV: r.Event.RV, Size: r.Event.Size, Lag: r.Lag.Milliseconds()})
}

func (v *Findings) ended(o *open, r Record) {
	row, t := o.row, o.history
	row.Bytes += r.Bytes
	row.Lost += r.Lost
	row.Pages++
	if row.Pages == 1 {
		row.FirstByte = r.FirstByte.Milliseconds()
	}
	row.Status, row.Took, row.End, row.ended = r.Status, r.At.Sub(row.At).Milliseconds(), r.Cause, r.At
	t.row, t.listRow = row, nil
	if r.List.Continue {
		t.listRow = row
	}
	if r.List.RV != "" {
		row.Newest = r.List.RV
		t.listRV, t.givens, t.settled = r.List.RV, nil, ""
	}
	switch {
	case o.ask.Watch:
		delete(t.watches, r.Request)
		v.watchEnded(o, r)
	case o.ask.reads() && r.Status == 200:
		v.listed(o)
	}
}

// View is what is shown of the fold, newest first.
type View struct {
	Requests int64     `json:"requests"`
	Frames   int64     `json:"frames"`
	Findings []Finding `json:"findings"`
	Clients  []Client  `json:"clients"`
	Rows     []Row     `json:"rows"`
}

// Client is one client as it is shown.
type Client struct {
	Name      string `json:"name"`
	Resources int    `json:"resources"` // histories
	Watches   int    `json:"watches"`   // that are open
	Findings  int    `json:"findings"`
}

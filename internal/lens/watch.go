package lens

import (
	"context"
	"net/http"
	"time"

	"listwatch/internal/wiretap"
)

// period is how often the lens looks whether clients read, and lets the findings see that time passes.
const period = time.Second

// Run reads what passes until ctx is done, and then what has passed by then. It is called once.
func (l *Lens) Run(ctx context.Context) {
	ticker := l.config.Clock.NewTicker(period)
	defer ticker.Stop()
	defer l.transport.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			l.drain()
			return
		case each := <-l.pieces:
			l.read(each)
		case now := <-ticker.C():
			l.look(now)
		}
	}
}

// drain reads what waits, and finds the ends that did not fit into the queue.
func (l *Lens) drain() {
	for len(l.pieces) > 0 {
		l.read(<-l.pieces)
	}
	for _, x := range l.reading {
		if ended := time.Duration(x.ended.Load()); ended > 0 {
			l.finish(x, x.began.Add(ended))
		}
	}
}

// read takes one piece.
func (l *Lens) read(each piece) {
	x := each.exchange
	switch {
	case each.data != nil:
		l.queued.Add(-int64(len(each.data)))
		l.readFrames(each)
	case each.record.What == Asked:
		l.reading[x.id] = x
		l.fold(x, each.record)
	case l.reading[x.id] == nil: // it passed unseen, or its end was noticed before
	case each.record.What == Ended:
		l.finish(x, each.record.At)
	default:
		l.fold(x, each.record)
	}
}

func (l *Lens) readFrames(each piece) {
	x := each.exchange
	if l.reading[x.id] == nil {
		return
	}
	if x.events == nil {
		x.events = wiretap.NewEvents(x.mediaType)
	}
	if each.offset != x.next {
		x.events.Lost()
	}
	x.next = each.offset + int64(len(each.data))
	for _, event := range x.events.Read(each.data) {
		record := Record{At: each.record.At, Request: x.id, What: Framed, Event: event}
		record.Lag = l.sights.lag(x.ask.Resource, event, record.At)
		l.fold(x, record)
	}
}

// finish folds the end of an exchange, with what is known of it then.
func (l *Lens) finish(x *exchange, at time.Time) {
	delete(l.reading, x.id)
	record := Record{
		At: at, Request: x.id, What: Ended, Status: int(x.status.Load()), Bytes: x.bytes.Load(),
		FirstByte: time.Duration(x.firstByte.Load()), Lost: x.lost.Load(),
	}
	record.Cause, _ = x.cause.Load().(string)
	if x.ask.reads() && !x.ask.Watch && record.Status == http.StatusOK {
		record.List = wiretap.ReadListHead(x.head, x.mediaType, x.encoding)
	}
	l.fold(x, record)
}

// look reports the clients that do not read, and finds the ends that did not fit into the queue.
func (l *Lens) look(now time.Time) {
	for _, x := range l.reading {
		l.show(x, Record{What: Ticked})
		since := time.Duration(x.writing.Load())
		if waited := now.Sub(x.began) - since; since > 0 && x.ended.Load() == 0 && waited >= period && x.ask.Watch {
			l.fold(x, Record{At: now, Request: x.id, What: Stuck, Waited: waited})
		}
		if ended := time.Duration(x.ended.Load()); ended > 0 && now.Sub(x.began)-ended > period && len(l.pieces) == 0 {
			l.finish(x, x.began.Add(ended))
		}
	}
	l.fold(nil, Record{At: now, What: Ticked})
}

// fold takes a record of an exchange; nil: of none.
func (l *Lens) fold(x *exchange, record Record) {
	l.show(x, record)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.findings.Apply(record)
}

// Report is what the lens has seen.
type Report struct {
	Server  string `json:"server"`
	Writes  bool   `json:"writes"`
	Running int    `json:"running"` // requests that are being forwarded
	Dropped int64  `json:"dropped"` // bytes that were forwarded and not looked at
	Blind   int64  `json:"blind"`   // requests that passed unseen
	View
}

// Report returns what the lens has seen.
func (l *Lens) Report() Report {
	report := Report{Server: l.transport.Server().String(), Writes: l.config.Writes, Dropped: l.dropped.Load(), Blind: l.blind.Load()}
	l.running.Range(func(_, _ any) bool { report.Running++; return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	report.View = l.findings.View(l.config.Clock.Now())
	return report
}

// sights are when versions were first seen, by resource: from that one knows how far behind another watch is.
type sights map[string]*sight

// sight is of one resource: a ring of the newest versions.
type sight struct {
	first map[string]time.Time
	order []string
}

// How many versions are remembered of how many resources.
const (
	maxSights    = 1024
	maxResources = 64
)

// lag returns how long ago the version was first seen, and remembers it if it was not.
func (s sights) lag(resource string, event wiretap.Event, now time.Time) time.Duration {
	if event.Type != "MODIFIED" && event.Type != "DELETED" {
		return 0 // what is ADDED may be old, and only be the state that a watch begins with
	}
	seen := s[resource]
	if seen == nil {
		if len(s) == maxResources {
			return 0
		}
		seen = &sight{first: map[string]time.Time{}}
		s[resource] = seen
	}
	if first, ok := seen.first[event.RV]; ok {
		return now.Sub(first)
	}
	if len(seen.order) == maxSights {
		delete(seen.first, seen.order[0])
		seen.order = seen.order[1:]
	}
	seen.first[event.RV] = now
	seen.order = append(seen.order, event.RV)
	return 0
}

package probe

import (
	"encoding/base64"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// LoudLanes is the number of a resource's lanes that the program keeps loud when no viewer looks at them.
	LoudLanes = 32
	// MaxCrowd is the maximum number of watchers that one [CrowdLookedAt] covers.
	MaxCrowd = 5000
)

// Lengths returns the numbers of events in a watcher's input and in its result, and the capacity of each.
type Lengths func() (input, result, capacity int)

// lane is one of many subjects that are alike, such as a watcher. The log has every moment of a loud lane. It leaves
// out the routine moments of a quiet lane: with a thousand watchers, one event would make up to six thousand records,
// more than a viewer can follow. It always has the other moments: beginning and end, waits for room with their ends,
// and anomalies. One record has the levels of all quiet lanes of a resource.
//
//	loud    … InputSent  InputReceived  ResultSent
//	quiet   … ResultBlocked  ResultSent               a wait, and its end
//	all     … CrowdLookedAt                           once a second, if a level has changed
//	loud    … WatcherLookedAt 10 10  InputReceived    a viewer looks at it from here on
type lane struct {
	// Set by [Probe.Lane], never changed.
	log     *Log
	probe   *Probe // reports that the lane becomes loud; has no lane itself
	lengths Lengths

	loud atomic.Bool
	// Whether the log has the beginning of a wait, and therefore also needs the routine moment that ends it.
	inputBlocked, resultBlocked atomic.Bool

	own bool // whether the client is always followed; guarded by lanes.mu
}

// lanes are the open lanes of a log.
type lanes struct {
	mu     sync.Mutex // guards the fields below; taken after a station's lock and before the log's
	limit  int        // the n of [Log.LimitLoud]; 0: all lanes are loud
	own    func(agent string) bool
	open   map[string][]*lane // by resource, the oldest first
	looked []*lane            // the lanes with which lookLocked was called last, the newest last; at most limit
	told   map[string]string  // by resource, the levels at the last LookAtCrowd; "" if the lanes have changed since
}

// LimitLoud makes lanes quiet, except the n oldest open lanes of each resource, the lanes of clients for which
// own(user agent) is true, and the last n lanes at which viewers looked ([Log.Look]) or for which the dispatcher
// waited. Call it before there are lanes. All lanes are loud while a gate is closed, if n is 0, or before any call.
func (l *Log) LimitLoud(n int, own func(agent string) bool) {
	l.lanes.mu.Lock()
	defer l.lanes.mu.Unlock()
	l.lanes.limit, l.lanes.own = n, own
	l.lanes.open, l.lanes.told = map[string][]*lane{}, map[string]string{}
}

// Lane returns a probe for one of many subjects, which may be quiet; nil for a nil p. The lane is open from a point
// with Op Open to one with Op Close. Meanwhile the log calls lengths under its own lock, so lengths must take no lock.
func (p *Probe) Lane(id string, lengths Lengths) *Probe {
	subject := p.Subject(id)
	if subject == nil {
		return nil
	}
	p.log.lanes.mu.Lock()
	defer p.log.lanes.mu.Unlock()
	if p.log.lanes.limit == 0 {
		return subject
	}
	ln := &lane{log: p.log, probe: subject, lengths: lengths}
	return &Probe{log: p.log, resource: p.resource, subject: id, lane: ln}
}

// drops reports whether the log leaves a moment out. While a gate is closed, it makes a quiet lane loud instead.
func (ln *lane) drops(point Point, typ string) bool {
	switch {
	case !point.Info().Routine, typ == "ERROR", ln.loud.Load(), point == InputSent && ln.inputBlocked.Swap(false),
		point == ResultSent && ln.resultBlocked.Swap(false):
		return false
	case ln.log.gate.closed.Load():
		ln.log.lanes.mu.Lock()
		defer ln.log.lanes.mu.Unlock()
		ln.wakeLocked()
		return false
	}
	return true
}

// notesLocked updates the lists of lanes, and makes lanes loud, before the log writes a moment that is not routine. The
// caller holds lanes.mu until the moment is written: the log then has the beginnings and ends of lanes in the list's
// order, and each CrowdLookedAt in its place among them.
func (ln *lane) notesLocked(point Point, texts Texts) {
	info, all, resource := point.Info(), &ln.log.lanes, ln.probe.resource
	switch {
	case info.Op == Open:
		all.open[resource] = append(all.open[resource], ln)
		all.told[resource] = ""
		if all.wantsLocked(ln) {
			ln.loud.Store(true) // loud from its beginning on, so its queues are known to be empty
		}
	case info.Op == Close:
		all.open[resource] = without(all.open[resource], ln)
		all.looked = without(all.looked, ln)
		all.told[resource] = ""
		ln.loud.Store(true) // the log writes every later moment of the lane
	case point == InputBlocked:
		ln.inputBlocked.Store(true)
		all.lookLocked(ln) // the dispatcher waits for this lane
	case point == ResultBlocked:
		ln.resultBlocked.Store(true)
	case point == WireOpened && all.own != nil && all.own(texts.Get(FieldAgent)):
		ln.own = true
		ln.wakeLocked()
	}
}

// wakeLocked makes a quiet lane loud, and reports the lengths of its channels. If a goroutine has sent or received but
// has not reported it yet, the picture briefly shows one event too many or too few.
func (ln *lane) wakeLocked() {
	if !ln.loud.Swap(true) {
		ln.log.lanes.told[ln.probe.resource] = ""
		input, result, _ := ln.lengths()
		ln.probe.At(WatcherLookedAt, "", 0, input, result)
	}
}

// wantsLocked reports whether a lane should be loud by the rules of [Log.LimitLoud].
func (a *lanes) wantsLocked(ln *lane) bool {
	open := a.open[ln.probe.resource]
	return ln.own || slices.Contains(open[:min(len(open), a.limit)], ln) || slices.Contains(a.looked, ln) ||
		ln.log.gate.Closed()
}

// Look makes the lane of a subject loud, because a viewer looks at it. The lane at which viewers have not looked for
// the longest time may become quiet. Look does nothing if the subject has no open lane.
func (l *Log) Look(resource, subject string) {
	l.lanes.mu.Lock()
	defer l.lanes.mu.Unlock()
	for _, ln := range l.lanes.open[resource] {
		if ln.probe.subject == subject {
			l.lanes.lookLocked(ln)
		}
	}
}

func (a *lanes) lookLocked(ln *lane) {
	a.looked = append(without(a.looked, ln), ln)
	a.looked = a.looked[max(0, len(a.looked)-a.limit):]
	ln.wakeLocked()
}

// LookAtCrowd makes each lane loud or quiet as the limits require. For each resource it reports how full the quiet
// lanes are, if that has changed. The program calls it every second.
func (l *Log) LookAtCrowd() {
	l.lanes.mu.Lock()
	defer l.lanes.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(l.lanes.open)) {
		quiet, fill := l.lanes.fillLocked(resource)
		text := base64.StdEncoding.EncodeToString(fill)
		if quiet > 0 && l.lanes.told[resource] != text {
			p := Probe{log: l, resource: resource}
			p.Text(CrowdLookedAt, text, "", 0, len(l.lanes.open[resource]), quiet)
		}
		l.lanes.told[resource] = text
	}
}

// fillLocked makes each lane of a resource loud or quiet. It returns the number of quiet lanes, and a byte for each of
// the first MaxCrowd lanes: 0 for a loud one, otherwise the level of the lane's fuller channel, from 1 (empty) to 101.
func (a *lanes) fillLocked(resource string) (quiet int, fill []byte) {
	fill = make([]byte, min(len(a.open[resource]), MaxCrowd))
	for i, ln := range a.open[resource] {
		if a.wantsLocked(ln) {
			ln.wakeLocked()
			continue
		}
		ln.loud.Store(false)
		quiet++
		if input, result, capacity := ln.lengths(); i < MaxCrowd {
			fill[i] = byte(1 + 100*max(input, result)/max(1, capacity))
		}
	}
	return quiet, fill
}

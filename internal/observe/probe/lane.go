package probe

import (
	"slices"
	"sync"
	"sync/atomic"
)

// LoudLanes is how many lanes of a resource are loud in the program, whether anyone looks at them or not.
const LoudLanes = 32

// lane is one of many subjects that are alike, such as a watcher. Of a loud lane every moment is in the log. Of a quiet
// one the routine moments are only counted: of a thousand watchers nothing reads the three thousand records that one
// event would make. What is not routine is always in the log: beginning and end, waits with their ends, anomalies.
//
//	loud    … InputSent  InputReceived  ResultSent  WatcherSummed 0 0 0 0     from here on moments are counted
//	quiet   … InputBlocked  InputSent                                         a wait, and its end
//	quiet   … WatcherSummed 500 499 480 478                                   what was counted since the last sum
//
// A sum is added to the counters, in any order with what is reported, and then counters and lengths are exact. Each
// routine moment is either in the log or in one sum, because one word decides: the count, and in it whether the lane is
// loud.
type lane struct {
	// Set by [Probe.Lane], never changed.
	log  *Log
	sums *Probe // reports the sums; it has no lane of its own

	counts [summed]atomic.Uint64 // of each arg of WatcherSummed, with laneLoud and laneOnce in it

	own bool // the client is one that is always followed; guarded by lanes.mu
}

const (
	summed   = 4       // args of WatcherSummed
	laneLoud = 1 << 63 // in a count: moments of this kind are written
	laneOnce = 1 << 62 // in a count: the next one is, because a wait ends with it
	laneSum  = laneOnce - 1
)

// routines says of each routine point which count decides, 1 to summed, and whether the point itself is counted there.
// 0: the point is not routine.
var routines = routineOf(&points)

type counting struct {
	count  int
	itself bool
}

func routineOf(points *[len(points)]Info) (all [len(points)]counting) {
	sums := points[WatcherSummed].Args.List()
	for p := range points {
		if by := points[p].Routine; by != "" {
			all[p] = counting{1 + slices.Index(sums, by), by == points[p].Name}
		}
	}
	return all
}

// lanes are a log's lanes that are open.
type lanes struct {
	mu     sync.Mutex // guards the fields below; taken after a station's lock and before the log's
	limit  int        // how many of a resource are loud; 0: all
	own    func(agent string) bool
	open   map[string][]*lane // by resource, the oldest first
	looked []*lane            // at which someone has looked, the last one last; at most limit
}

// LimitLoud makes all lanes quiet but these: the first n that are open of each resource, those whose client own accepts
// by its user agent, and the n at which someone has looked last ([Log.Look]). While a gate is closed, all lanes are
// loud. It is called before there are lanes; without it, or with n 0, all are loud.
func (l *Log) LimitLoud(n int, own func(agent string) bool) {
	l.lanes.mu.Lock()
	defer l.lanes.mu.Unlock()
	l.lanes.limit, l.lanes.own, l.lanes.open = n, own, map[string][]*lane{}
}

// Lane returns a probe for one of many subjects, which may be quiet. The lane is open from here until the probe reports
// a point that closes.
func (p *Probe) Lane(id string) *Probe {
	subject := p.Subject(id)
	if subject == nil {
		return nil
	}
	all := &p.log.lanes
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.limit == 0 {
		return subject
	}
	ln := &lane{log: p.log, sums: subject}
	all.open[p.resource] = append(all.open[p.resource], ln)
	if all.wantsLocked(ln) {
		ln.wake()
	}
	return &Probe{log: p.log, resource: p.resource, subject: id, lane: ln}
}

// keeps reports whether a moment is only counted. A lane whose world is held is loud from its next moment on.
func (ln *lane) keeps(point Point, typ string) bool {
	kind := routines[point]
	if kind.count == 0 || typ == "ERROR" {
		return false
	}
	count := &ln.counts[kind.count-1]
	for {
		v := count.Load()
		switch {
		case v&laneLoud != 0:
			return false
		case v&laneOnce != 0 && kind.itself:
			if count.CompareAndSwap(v, v&^laneOnce) {
				return false
			}
		case ln.log.gate.closed.Load():
			ln.wake()
			return false
		case !kind.itself || count.CompareAndSwap(v, v+1):
			return true
		}
	}
}

// notes is told every moment that is written and not routine, before it is.
func (ln *lane) notes(point Point, texts Texts) {
	info := point.Info()
	for _, name := range info.Until.List() {
		if i := slices.Index(points[WatcherSummed].Args.List(), name); i >= 0 {
			ln.counts[i].Or(laneOnce)
		}
	}
	all := &ln.log.lanes
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case info.Op == Close:
		all.open[ln.sums.resource] = without(all.open[ln.sums.resource], ln)
		all.looked = without(all.looked, ln)
		ln.wake() // what is still reported of the lane is written
	case point == InputBlocked:
		all.lookLocked(ln) // the dispatcher waits for it
	case point == WireOpened:
		if all.own != nil && all.own(texts.Get(FieldAgent)) {
			ln.own = true
			ln.wake()
		}
	}
}

// wake makes the lane loud, and reports what was counted since the last sum. A wait that has begun stays noted: the
// lane may be quiet again when it ends.
func (ln *lane) wake() {
	for i := range ln.counts {
		ln.counts[i].Or(laneLoud) // from here on nothing is counted
	}
	ln.sum()
}

// sum reports what was counted since the last sum.
func (ln *lane) sum() {
	var n [summed]int
	for i := range ln.counts {
		n[i] = int(ln.counts[i].And(laneLoud|laneOnce) & laneSum)
	}
	if n != [summed]int{} {
		ln.tell(n)
	}
}

func (ln *lane) tell(n [summed]int) { ln.sums.At(WatcherSummed, "", 0, n[0], n[1], n[2], n[3]) }

// hush makes the lane quiet. It says so first, by a sum of nothing: no moment is missing of which a reader was not
// told.
func (ln *lane) hush() {
	ln.tell([summed]int{})
	for i := range ln.counts {
		ln.counts[i].And(^uint64(laneLoud))
	}
}

func (ln *lane) isLoud() bool { return ln.counts[0].Load()&laneLoud != 0 }

// wantsLocked reports whether a lane is to be loud.
func (a *lanes) wantsLocked(ln *lane) bool {
	open := a.open[ln.sums.resource]
	return ln.own || slices.Contains(open[:min(len(open), a.limit)], ln) || slices.Contains(a.looked, ln) ||
		ln.log.gate.Closed()
}

// Look makes the lane of a subject loud, because someone looks at it; the one that was looked at longest ago may become
// quiet. Of a subject that is no open lane it does nothing.
func (l *Log) Look(resource, subject string) {
	l.lanes.mu.Lock()
	defer l.lanes.mu.Unlock()
	for _, ln := range l.lanes.open[resource] {
		if ln.sums.subject == subject {
			l.lanes.lookLocked(ln)
		}
	}
}

func (a *lanes) lookLocked(ln *lane) {
	a.looked = append(without(a.looked, ln), ln)
	a.looked = a.looked[max(0, len(a.looked)-a.limit):]
	ln.wake()
}

// SumLanes reports of every quiet lane how much has passed since the last sum, and makes loud and quiet what is to be
// so. The program calls it every second.
func (l *Log) SumLanes() {
	l.lanes.mu.Lock()
	defer l.lanes.mu.Unlock()
	for _, open := range l.lanes.open {
		for _, ln := range open {
			switch wanted := l.lanes.wantsLocked(ln); {
			case wanted && !ln.isLoud():
				ln.wake()
			case !wanted && ln.isLoud():
				ln.hush()
			case !wanted:
				ln.sum()
			}
		}
	}
}

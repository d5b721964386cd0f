package probe

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"listwatch/internal/observe/routine"
)

// Gate holds goroutines at the moments they report: at a point where it is closed, [Probe.At] blocks until the gate
// releases the goroutine. The log already has the moment, so the picture shows where each goroutine is. Real goroutines
// stop, so the queues behind them fill up as behind any slow goroutine.
//
//	            open            closed at station "watcher"                 the world is held
//	sender      ──●──►  queue   ──●──►  queue [##########]  10/10           ──●┃
//	receiver    ──●──►          ──●┃    paused at InputReceived             ──●┃
//
// There are two ways to close the gate. [Gate.Hold] closes it for the whole world: a goroutine stops at its next point,
// unless the moment is only about etcd's progress. [Gate.Close] closes it for one station, or one subject there: it
// stops only goroutines that take from a queue or act at the station. A goroutine that fills the station's queue is at
// the station before: the full queue stops it, not the gate.
//
// The gate never holds a goroutine at a point that is reported under a lock ([Info].Locked), begins a wait for room or
// for a taker, or passes for another reason ([Info].Passes). It does not hold requests that only read: a reader is not
// part of the held world.
//
// The zero value is open. All methods are safe for concurrent use.
type Gate struct {
	closed  atomic.Bool   // whether the gate may have to hold a goroutine; written under mu; read at each point
	changes atomic.Uint64 // number of possible changes of the result of [Gate.State]
	names   *Names        // the names of the gate's log; set by NewLog, never changed

	mu      sync.Mutex // guards the fields below; taken before the lock of names
	world   bool       // whether the whole world is held
	ended   bool       // whether the gate is open permanently
	gates   []Query    // the stations closed on their own, whether or not the world is held
	opened  []Query    // the stations that are open although the world is held
	waiting []*waiter  // the paused goroutines in the order in which they arrived
}

// waiter is one goroutine that is paused at the gate.
type waiter struct {
	record  Record
	since   time.Time     // on the wall clock, because the world's clock may be stopped
	passed  chan struct{} // closed, once, by the goroutine that releases it, under Gate.mu; never sent on
	callers []uintptr
}

// Holdable reports whether the gate can hold a goroutine at the point. It is false under a lock, for a point with
// Passes, and for a goroutine that is about to wait for room or for a taker.
func (p Point) Holdable() bool {
	info := p.Info()
	onOther := info.Waits == ForRoom || info.Waits == ForTaker
	return !info.Locked && info.Passes == "" && !onOther
}

// onlyLooks reports whether a moment is the beginning or the end of a request that only reads. Opening a watch is a
// read, too, but the gate holds everything that then flows in it.
func onlyLooks(r *Record) bool {
	return (r.Point == RequestReceived || r.Point == RequestAnswered) && r.Texts.Get(FieldMethod) == "GET"
}

// Hold closes the gate for the whole world, including stations opened on their own.
func (g *Gate) Hold() { g.change(func() { g.world, g.opened = true, nil }) }

// Unhold resumes the world. Stations that were closed on their own stay closed.
func (g *Gate) Unhold() { g.change(func() { g.world, g.opened = false, nil }) }

// Release opens the gate everywhere: it undoes every Hold and every Close.
func (g *Gate) Release() { g.change(func() { g.world, g.opened, g.gates = false, nil, nil }) }

// Close closes the gate at the moments that q selects, except at sends into a channel.
func (g *Gate) Close(q Query) {
	g.change(func() { g.opened, g.gates = without(g.opened, q), append(without(g.gates, q), q) })
}

// Open undoes a Close with an equal q. In a held world, it also lets goroutines pass at the moments that q selects.
func (g *Gate) Open(q Query) {
	g.change(func() {
		g.gates = without(g.gates, q)
		if g.world {
			g.opened = append(without(g.opened, q), q)
		}
	})
}

// End opens the gate permanently, before the program ends: from now on the gate holds no goroutine, whatever is closed.
func (g *Gate) End() { g.change(func() { g.ended = true }) }

// change runs make under the lock, and releases the goroutines that the gate no longer holds.
func (g *Gate) change(make func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	make()
	g.closed.Store(!g.ended && (g.world || len(g.gates) > 0))
	g.letGoLocked(func(r *Record) bool { return !g.holdsLocked(r) })
}

// Step releases the held goroutines that q selects, and returns their number. Each passes exactly one point: the gate
// stays closed, and holds the goroutine at its next point.
func (g *Gate) Step(q Query) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := len(g.waiting)
	g.letGoLocked(q.Matches)
	return before - len(g.waiting)
}

// wait returns when the goroutine that has reported r may continue. The log already has r.
func (g *Gate) wait(r Record) {
	if !r.Point.Holdable() || onlyLooks(&r) {
		return
	}
	if w := g.enter(r); w != nil {
		<-w.passed
	}
}

// enter adds and returns a waiter, whose passed channel the goroutine must await. It returns nil if none is needed.
func (g *Gate) enter(r Record) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.holdsLocked(&r) {
		return nil
	}
	w := &waiter{record: r, since: time.Now(), passed: make(chan struct{}), callers: make([]uintptr, 48)}
	w.callers = w.callers[:runtime.Callers(callersOfAt, w.callers)]
	g.waiting = append(g.waiting, w)
	g.changes.Add(1)
	return w
}

func (g *Gate) holdsLocked(r *Record) bool {
	selected := func(q Query) bool { return q.Matches(r) }
	switch {
	case g.ended:
		return false
	case r.Point.Info().Op != Send && slices.ContainsFunc(g.gates, selected):
		return true
	}
	return g.world && !progress(r) && !slices.ContainsFunc(g.opened, selected)
}

// progress reports whether a moment is about no object, but only about etcd's progress. A held world lets such moments
// pass, so that no change has to wait behind one; a station that is closed on its own holds them.
func progress(r *Record) bool {
	return r.Key == "" && (r.Type == "BOOKMARK" || r.Point == Etcd3IncomingSent || r.Point == Etcd3IncomingReceived)
}

func (g *Gate) letGoLocked(wanted func(*Record) bool) {
	g.changes.Add(1)
	stay := g.waiting[:0]
	for _, w := range g.waiting {
		if wanted(&w.record) {
			close(w.passed)
		} else {
			stay = append(stay, w)
		}
	}
	clear(g.waiting[len(stay):])
	g.waiting = stay
}

// Closed reports whether the gate is closed anywhere.
func (g *Gate) Closed() bool { return g.closed.Load() }

// Changes returns a number that changes whenever the result of [Gate.State] may change.
func (g *Gate) Changes() uint64 { return g.changes.Load() }

// without returns a copy of list without the elements that equal one.
func without[T any](list []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(each T) bool { return reflect.DeepEqual(each, one) })
}

// callersOfAt is the number of frames of a waiter's stack above the reporting function: runtime.Callers, enter, wait,
// report, and At or Event, Text or Texts.
const callersOfAt = 5

// GateState lists where a gate is closed, and which goroutines it holds.
type GateState struct {
	Held    bool      `json:"held"`    // whether the whole world is held
	Gates   []Query   `json:"gates"`   // the stations that are closed on their own
	Opened  []Query   `json:"opened"`  // the stations that are open although the world is held
	Waiting []Waiting `json:"waiting"` // the goroutines that the gate holds, the one held longest first
}

// Waiting describes one goroutine that the gate holds, for the page.
type Waiting struct {
	// The routine name if the point declares exactly one, otherwise "request" or the function that the goroutine runs.
	Goroutine string  `json:"goroutine"`
	Function  string  `json:"function"` // for example "cacher.(*Cacher).processEvent"
	Line      string  `json:"line"`     // "incoming.go:22"
	Station   Station `json:"station"`
	Record            // the moment at which the gate holds it; the key has the form "default/a"
	Says      string  `json:"says"`    // the record's sentence
	Seconds   float64 `json:"seconds"` // the length of the hold so far, on the wall clock
}

// State returns the gate's state. The caller owns it.
func (g *Gate) State() GateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := GateState{Held: g.world && !g.ended, Gates: append([]Query{}, g.gates...),
		Opened: append([]Query{}, g.opened...), Waiting: []Waiting{}}
	for _, w := range g.waiting {
		state.Waiting = append(state.Waiting, w.describe(g.names))
	}
	return state
}

// describe finds the reporting function on the stack. The goroutine's name is the point's lane if there is exactly one,
// "request" if net/http runs it, or else its outermost function outside the packages runtime and routine.
func (w *waiter) describe(names *Names) Waiting {
	info := w.record.Point.Info()
	held := Waiting{Station: info.Station, Record: w.record, Says: names.Sentence(&w.record),
		Seconds: time.Since(w.since).Seconds()}
	held.Key = ObjectKey(held.Key)
	if lanes := info.Lanes(); len(lanes) == 1 {
		held.Goroutine = lanes[0]
	}
	body := ""
	frames := runtime.CallersFrames(w.callers)
	for more := len(w.callers) > 0; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if held.Function == "" {
			held.Function, held.Line = routine.Place(frame)
		}
		if strings.HasPrefix(frame.Function, "net/http.") {
			body = "request"
			break
		}
		if strings.HasPrefix(frame.Function, "runtime") || strings.Contains(frame.Function, "/routine.") {
			break
		}
		body, _ = routine.Place(frame)
	}
	if held.Goroutine == "" {
		held.Goroutine = body
	}
	return held
}

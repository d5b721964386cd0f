package probe

import (
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Gate holds goroutines at the moments they report: at a point where it is closed, [Probe.At] does not return. The
// moment itself is written down before, so the picture shows where each goroutine is. And because real goroutines
// really stop, the queues behind them fill up as they would behind any slow one.
//
//	            open            closed at station "watcher"                 the world is held
//	sender      ──●──►  queue   ──●──►  queue [▮▮▮▮▮▮▮▮▮▮]  10/10           ──●┃
//	receiver    ──●──►          ──●┃    paused at InputReceived             ──●┃
//
// There are two ways to close it. [Gate.Hold] closes it for the whole world: every goroutine stops at its next point.
// [Gate.Close] closes it for one station, or one subject there: only goroutines stop that take something out of a queue
// or act at the station. A goroutine that brings something there belongs to the station before; the full queue stops
// it, not the gate.
//
// The gate never holds a goroutine at a point that is reported under a lock ([Info].Locked), that begins a wait, or
// that passes for another reason ([Info].Passes). It holds no request that only reads: a reader is not part of the held
// world.
//
// The zero value is open. All methods are safe for concurrent use.
type Gate struct {
	closed  atomic.Bool   // a goroutine may have to be held; written under mu, and all that an open gate costs
	changes atomic.Uint64 // counts what [Gate.State] would show
	names   *Names        // of its log; set by NewLog, never changed

	mu      sync.Mutex // guards the fields below; nothing is called while it is held
	world   bool       // held as a whole
	ended   bool       // open for good
	gates   []Query    // closed, whatever the world is
	opened  []Query    // open, although the world is held
	waiting []*waiter  // in the order in which they came
}

// waiter is one goroutine that is paused at the gate.
type waiter struct {
	record  Record
	since   time.Time     // on the wall: the world's clock may be stopped
	passed  chan struct{} // closed, once, by the goroutine that releases it, under Gate.mu; nothing is sent
	callers []uintptr
}

// Holdable reports whether a goroutine can be held at the point. One that is about to wait for room or a taker is
// not held on top of that: it waits, as the moment says.
func (p Point) Holdable() bool {
	info := p.Info()
	onOther := info.Waits == ForRoom || info.Waits == ForTaker
	return !info.Locked && info.Passes == "" && !onOther
}

// onlyLooks reports whether a moment is that of a request that reads. A watch is opened by reading, too; what then
// flows in it is held like everything else.
func onlyLooks(r *Record) bool {
	return (r.Point == RequestReceived || r.Point == RequestAnswered) && r.Texts.Get(FieldMethod) == "GET"
}

// Hold closes the gate for the whole world, stations that were opened on their own included.
func (g *Gate) Hold() { g.change(func() { g.world, g.opened = true, nil }) }

// Unhold lets the world go. Where the gate was closed on its own it stays so.
func (g *Gate) Unhold() { g.change(func() { g.world, g.opened = false, nil }) }

// Release opens the gate for every goroutine.
func (g *Gate) Release() { g.change(func() { g.world, g.opened, g.gates = false, nil, nil }) }

// Close closes the gate for what q means.
func (g *Gate) Close(q Query) {
	g.change(func() { g.opened, g.gates = without(g.opened, q), append(without(g.gates, q), q) })
}

// Open opens the gate for what q means, also while the world is held: then that station runs on its own.
func (g *Gate) Open(q Query) {
	g.change(func() {
		g.gates = without(g.gates, q)
		if g.world {
			g.opened = append(without(g.opened, q), q)
		}
	})
}

// End opens the gate for good: from now on it holds no goroutine, whatever is asked. For the end of the program.
func (g *Gate) End() { g.change(func() { g.ended = true }) }

// change makes a change under the lock, and releases the goroutines that the gate no longer holds.
func (g *Gate) change(make func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	make()
	g.closed.Store(!g.ended && (g.world || len(g.gates) > 0))
	g.letGoLocked(func(r *Record) bool { return !g.holdsLocked(r) })
}

// Step releases the goroutines that are held now at what q means, and returns how many these were. Each passes
// exactly one point: the gate stays closed, and holds it at the next one.
func (g *Gate) Step(q Query) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := len(g.waiting)
	g.letGoLocked(q.Matches)
	return before - len(g.waiting)
}

// wait returns when the goroutine that has reported r may continue. r is in the log already.
func (g *Gate) wait(r Record) {
	if !r.Point.Holdable() || onlyLooks(&r) {
		return
	}
	if w := g.enter(r); w != nil {
		<-w.passed
	}
}

// enter returns what to wait for, nil for nothing.
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

// progress reports whether a moment only passes on how far etcd is: about no object. The held world lets it go by, so
// that it stands in front of no change; a gate that is closed on its own holds it.
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

// Changes returns a number that is another one whenever [Gate.State] may be.
func (g *Gate) Changes() uint64 { return g.changes.Load() }

// without returns a copy of list that lacks one.
func without[T any](list []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(each T) bool { return reflect.DeepEqual(each, one) })
}

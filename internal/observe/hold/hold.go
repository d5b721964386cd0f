// Package hold lets a user act on the running world, which is the pipeline with its clock: hold it and move it step by
// step, close the gate at one station, and stop, slow down, speed up or advance the clock.
//
// Holding closes the [probe.Gate] and stops the [worldclock.Clock] together. One alone would mislead: with the gate
// closed and the clock running, waits time out that otherwise would not; with the clock stopped and the gate open,
// goroutines that do not wait for time run on. A user can still start the clock while the gate is closed, and see the
// effect: a watcher that does not keep up is evicted.
//
// A held world that its holder has forgotten looks like a broken program, so a watchdog resumes it: when no page has
// been open for a while, and when the program ends.
package hold

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/worldclock"
)

const (
	// Unattended is the length of a hold with no page open, unless the caller of Hold specifies another time.
	Unattended = 5 * time.Minute
	// MaxUnattended is the longest such time that the page's commands accept.
	MaxUnattended = 24 * time.Hour

	watchdogPeriod = time.Second
)

// Config has the gate and the clocks that a [World] controls, and a function for its messages. All are required.
type Config struct {
	Gate  *probe.Gate
	Clock *worldclock.Clock
	// Patience is the clock of requests from outside, and of the watchdog. A hold never stops it, and it never runs
	// slower than the wall clock. It does not count the time for which the whole program is stopped, for example by a
	// debugger.
	Patience *worldclock.Clock
	// Say is called with one line when the watchdog resumes the world or opens its gates.
	Say func(line string)
}

// World holds and resumes the program's goroutines and its clock. All methods are safe for concurrent use.
type World struct {
	// Set by New, never changed.
	config Config

	changes atomic.Uint64 // counts changes of the hold and of the clock; the gate counts its own

	mu         sync.Mutex // guards the fields below; taken before the gate's and the clock's
	held       bool
	since      time.Time     // when the hold began, on the patience clock
	stopped    bool          // whether a caller stopped the clock without holding the world
	running    bool          // whether the clock runs although the world is held
	ended      bool          // whether the gate is open permanently
	attending  int           // open pages
	seen       time.Time     // when the last page was closed, or the gate was last used, on the patience clock
	unattended time.Duration // the watchdog's wait after seen
	letGo      string        // why the watchdog resumed the world or opened gates; "" if it has not since the last hold
}

// New returns a world that is not held.
func New(config Config) *World {
	return &World{config: config, seen: config.Patience.Now(), unattended: Unattended}
}

// Hold stops the clock and holds goroutines at their next points. If no page is open, the hold ends after the time
// unattended; 0 means [Unattended].
func (w *World) Hold(unattended time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attendLocked(unattended)
	if !w.held {
		w.held, w.since, w.letGo = true, w.config.Patience.Now(), ""
	}
	w.running = false
	w.setClockLocked() // the clock first: from here on no wait can time out
	w.config.Gate.Hold()
}

// HoldAt closes the gate at a station, or for a subject there, and does not stop the clock. unattended is as for Hold.
func (w *World) HoldAt(s probe.Query, unattended time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attendLocked(unattended)
	w.letGo = ""
	w.config.Gate.Close(s)
}

// Release resumes the world, and returns the clock to its state before the hold. Gates at single stations stay closed,
// because the viewer closed them to see their effect on the running world. If the world is not held, Release opens
// those gates.
func (w *World) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.config.Patience.Now()
	if !w.held {
		w.config.Gate.Release()
		return
	}
	w.config.Gate.Unhold()
	w.runOnLocked()
}

// ReleaseAt opens the gate for a station or one subject there, even while the world is held.
func (w *World) ReleaseAt(s probe.Query) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.config.Patience.Now()
	w.changes.Add(1)
	w.config.Gate.Open(s)
}

// runOnLocked ends the hold of the clock. Call it only after the gate has opened: otherwise held goroutines would lose
// time.
func (w *World) runOnLocked() {
	w.held, w.running = false, false
	w.setClockLocked()
}

// Step lets each held goroutine that hop selects pass one point, and returns the number of these goroutines.
func (w *World) Step(hop probe.Query) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.config.Patience.Now()
	return w.config.Gate.Step(hop)
}

// SetPaused stops the clock or lets it run. In a held world this lasts only as long as the hold: afterwards the clock
// returns to its earlier state.
func (w *World) SetPaused(paused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held {
		w.running = !paused
	} else {
		w.stopped = paused
	}
	w.setClockLocked()
}

// SetSpeed sets the speed of both clocks, for Patience at least 1. It returns an error if the clock refuses the speed.
func (w *World) SetSpeed(speed float64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.config.Clock.SetSpeed(speed); err != nil {
		return err
	}
	w.changes.Add(1)
	return w.config.Patience.SetSpeed(max(1, speed))
}

// Advance moves both clocks by d, whether they run or not, and returns when they have arrived.
func (w *World) Advance(d time.Duration) {
	w.config.Clock.Advance(d)
	w.config.Patience.Advance(d)
	w.changes.Add(1)
}

// setClockLocked stops the clock or lets it run, as the fields require.
func (w *World) setClockLocked() {
	w.changes.Add(1)
	w.config.Clock.SetPaused(!w.ended && (w.held && !w.running || !w.held && w.stopped))
}

// Attend counts an open page, whose viewer can resume the world, until leave is called. Calling leave again is allowed.
func (w *World) Attend() (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attending++
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.attending--
		w.seen = w.config.Patience.Now()
	})
}

func (w *World) attendLocked(unattended time.Duration) {
	w.seen, w.unattended = w.config.Patience.Now(), cmp.Or(unattended, Unattended)
}

// Run runs the watchdog until ctx is done. Then it permanently ends all holding, so that every goroutine can end.
func (w *World) Run(ctx context.Context) {
	defer w.end()
	routine.Every(ctx, w.config.Patience, watchdogPeriod, func(context.Context) { w.look() })
}

// end opens the gate, and lets the clock run, permanently.
func (w *World) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.config.Gate.End()
	w.runOnLocked()
}

// look resumes the world if it has been without an open page for too long, and passes the reason to Say.
func (w *World) look() {
	if reason := w.forsaken(); reason != "" {
		w.config.Say(reason)
	}
}

// forsaken resumes the world and opens its gates after too long a time without a page. It returns the reason, or "".
func (w *World) forsaken() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.config.Gate.State()
	alone := w.config.Patience.Since(w.seen)
	if w.attending > 0 || alone < w.unattended || !w.held && len(state.Gates) == 0 {
		return ""
	}
	what := "the world was resumed"
	if !w.held {
		what = "the gates were opened"
	}
	w.letGo = fmt.Sprintf("%s: no page was open for %s, and %d goroutines were paused", what, alone.Round(time.Second),
		len(state.Waiting))
	w.config.Gate.Release()
	w.runOnLocked()
	return w.letGo
}

// Changes returns a number that changes when [World.Status] may, except by the passing of time or by [World.Attend].
func (w *World) Changes() uint64 { return w.changes.Load() + w.config.Gate.Changes() }

// Stations returns, in path order, the stations at which [World.HoldAt] can hold goroutines.
func Stations() []probe.Station {
	var list []probe.Station
	for _, station := range probe.Stations {
		if slices.ContainsFunc(probe.Points(), func(p probe.Point) bool {
			return p.Info().Station == station && p.Info().Op != probe.Send && p.Holdable()
		}) {
			list = append(list, station)
		}
	}
	return list
}

// Status is the state of the hold and of the clock. It marshals to JSON.
type Status struct {
	probe.GateState
	Since      time.Time       `json:"since,omitzero"` // when the hold began, on the patience clock
	Clock      Clock           `json:"clock"`
	Stations   []probe.Station `json:"stations"`   // the stations that can have a gate
	Attending  int             `json:"attending"`  // open pages
	Unattended string          `json:"unattended"` // the length of a hold when no page is open
	LetGo      string          `json:"letGo,omitempty"`
}

// Clock is the state of the world's clock.
type Clock struct {
	worldclock.State
	Next []worldclock.Due `json:"next"` // the next timers
}

// shownTimers is the maximum number of timers in a status.
const shownTimers = 5

// Status returns the present state.
func (w *World) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{
		GateState: w.config.Gate.State(),
		Clock:     Clock{State: w.config.Clock.State(), Next: w.config.Clock.Upcoming(shownTimers)},
		Stations:  Stations(), Attending: w.attending, Unattended: w.unattended.String(), LetGo: w.letGo,
	}
	if s.Held {
		s.Since = w.since
	}
	return s
}

// Usual reports whether nothing is held, the clock runs like the wall clock, and the watchdog has resumed nothing.
func (s *Status) Usual() bool {
	return !s.Held && len(s.Gates) == 0 && !s.Clock.Paused && s.Clock.Speed == 1 && s.LetGo == ""
}

const (
	walkRounds = 400                   // maximum number of steps of a walk: queues may be long
	walkTick   = 10 * time.Millisecond // the pause between two looks at the world
	walkLooks  = 20                    // maximum number of looks while another goroutine is in front of the object
	walkGrace  = 4                     // maximum number of looks after that goroutine has moved: the object may follow
	walkWait   = 400                   // maximum number of looks while no goroutine is in front of the object
	walkRecent = 4000                  // records that the walk searches for its object
)

// walk moves one object or version through the held world.
type walk struct {
	log         *probe.Log
	probe.Query // the walk's subject: an object or a version, in a resource
}

// Walk moves an object or a version to its next recorded point at which a goroutine is held. If the object waits in a
// queue, Walk releases one by one the goroutines ahead of it, and no others. ends is why the walk found no such point,
// or "" if it did or the world was resumed. The only error is ctx's.
func (w *World) Walk(ctx context.Context, log *probe.Log, what probe.Query) (ends string, err error) {
	it := &walk{log, what}
	began, status := log.Last(), w.Status()
	before, next := it.newest(&status), probe.Query{Key: it.Key, RV: it.RV}
	var front *probe.Waiting // the goroutine that next selects; nil: the one with the walked object
	for range walkRounds {
		w.Step(next)
		moved := 0
		for n := 0; moved < walkGrace && (n < walkLooks || n < walkWait && it.inFront(&status) == nil); n++ {
			if err := routine.Sleep(ctx, clock.RealClock{}, walkTick); err != nil {
				return "", err
			}
			status = w.Status()
			if it.ran(began) {
				return "its handler has run", nil
			}
			if it.newest(&status) > before || !status.Held && len(status.Gates) == 0 {
				return "", nil
			}
			stands := func(each probe.Waiting) bool { return each.Seq == front.Seq }
			if front != nil && !slices.ContainsFunc(status.Waiting, stands) {
				moved++
			}
		}
		if front = it.inFront(&status); front == nil {
			break
		}
		next = probe.Query{Station: front.Station, Resource: front.Resource, Subject: front.Subject,
			Key: front.Key, RV: front.RV}
	}
	return "it is held nowhere: it has come to its end, or waits for a timer", nil
}

// has reports whether the walk follows the object or the version.
func (w *walk) has(key string, rv uint64) bool {
	return w.Key != "" && probe.ObjectKey(key) == probe.ObjectKey(w.Key) || w.RV != 0 && rv == w.RV
}

// newest returns the Seq of the newest record at which a goroutine is held with the walked object, or 0.
func (w *walk) newest(status *Status) (seq uint64) {
	for _, each := range status.Waiting {
		if w.has(each.Key, each.RV) {
			seq = max(seq, each.Seq)
		}
	}
	return seq
}

// ran reports whether a handler was called with the walked object after the record whose Seq is began.
func (w *walk) ran(began uint64) bool {
	for r := range w.log.Between(began, w.log.Last()) {
		if r.Point == probe.HandlerCalled && w.has(r.Key, r.RV) {
			return true
		}
	}
	return false
}

// inFront returns the held goroutine that is next on the path from the walked object on, or nil if there is none.
func (w *walk) inFront(status *Status) (first *probe.Waiting) {
	last := w.log.Last()
	var at probe.Point // the point of the walked object's newest record
	for r := range w.log.Between(max(last, walkRecent)-walkRecent, last) {
		if w.has(r.Key, r.RV) {
			at = onPath(r.Point, r.Subject)
		}
	}
	var least probe.Point
	for i := range status.Waiting {
		each := &status.Waiting[i]
		order := onPath(each.Point, each.Subject)
		here := each.Resource == "" || each.Resource == w.Resource
		if here && !w.has(each.Key, each.RV) && order >= at && (first == nil || order < least) {
			first, least = each, order
		}
	}
	return first
}

// onPath returns RingAppend for an event at the cache's own reflector, which goes to the ring next; otherwise point.
func onPath(point probe.Point, subject string) probe.Point {
	if subject == "cacher" && point == probe.ReflectorReceived {
		return probe.RingAppend
	}
	return point
}

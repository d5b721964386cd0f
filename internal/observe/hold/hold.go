// Package hold is what people may do to the running world: hold it and resume it hop by hop, close the gate at one
// station, stop, slow, hurry and move its clock.
//
// Holding closes the [probe.Gate] and stops the [worldclock.Clock] together. Doing only one would mislead: with the
// gate closed and the clock running, waits time out that otherwise would not; with the clock stopped and the gate open,
// all that does not wait for time runs on. A user can still start the clock while the gate is closed, and see what that
// does: the watcher that does not keep up is evicted.
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

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/worldclock"
)

const (
	// Unattended is how long a hold lasts with no page open, unless the caller of Hold says otherwise.
	Unattended = 5 * time.Minute
	// MaxUnattended is the longest that can be said.
	MaxUnattended = 24 * time.Hour

	watchdogPeriod = time.Second
)

// Config says what the world consists of.
type Config struct {
	Gate  *probe.Gate
	Clock *worldclock.Clock
	// Patience is the clock of requests from outside, and of the watchdog. It never stops, and never runs slower than
	// the wall's; of a program that is stopped as a whole it counts nothing, so that is no time unattended.
	Patience *worldclock.Clock
	// Say is called with one line when the watchdog resumes the world.
	Say func(line string)
}

// World is held, or not. All methods are safe for concurrent use.
type World struct {
	// Set by New, never changed.
	config Config

	changes atomic.Uint64 // of what is below; the gate counts its own

	mu         sync.Mutex // guards the fields below; taken before the gate's and the clock's
	held       bool
	since      time.Time     // on the wall
	stopped    bool          // the clock, by a caller that wanted just that
	running    bool          // the clock was let run although the world is held
	ended      bool          // for good
	attending  int           // pages that are open
	seen       time.Time     // when the last of them was closed, or a command came; on the wall
	unattended time.Duration // how long to wait from then
	letGo      string        // why the watchdog has; "" as long as it has not
}

// New returns a world that is not held.
func New(config Config) *World {
	return &World{config: config, seen: config.Patience.Now(), unattended: Unattended}
}

// Hold stops the clock and holds every goroutine at its next point. unattended is how long that lasts when no page is
// open; 0: [Unattended].
func (w *World) Hold(unattended time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attendLocked(unattended)
	if !w.held {
		w.held, w.since, w.letGo = true, w.config.Patience.Now(), ""
	}
	w.running = false
	w.setClockLocked() // the clock first: from here on nothing can time out
	w.config.Gate.Hold()
}

// HoldAt closes the gate at one station, or for one subject there. The clock is left alone.
func (w *World) HoldAt(s probe.Query, unattended time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attendLocked(unattended)
	w.letGo = ""
	w.config.Gate.Close(s)
}

// Release lets the world go, and the clock be what it was. Gates that were closed at single stations stay closed: what
// they do to the running world is what they were closed for. If the world is not held, Release opens them.
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

// ReleaseAt opens the gate for a station or one subject there, also while the world is held.
func (w *World) ReleaseAt(s probe.Query) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.config.Patience.Now()
	w.changes.Add(1)
	w.config.Gate.Open(s)
}

// runOnLocked lets the clock run again. It is called when the gate is open: had the clock run first, the goroutines
// that are held would have lost time.
func (w *World) runOnLocked() {
	w.held, w.running = false, false
	w.setClockLocked()
}

// Step lets those whom hop selects pass one point each, and returns how many that were.
func (w *World) Step(hop probe.Query) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.config.Patience.Now()
	return w.config.Gate.Step(hop)
}

// SetPaused stops the clock or lets it run. While the world is held that concerns the hold only: afterwards the clock
// is what it was before.
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

// SetSpeed sets how fast the clock runs when it runs. The error is that it cannot run that fast or that slowly.
func (w *World) SetSpeed(speed float64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.config.Clock.SetSpeed(speed); err != nil {
		return err
	}
	w.changes.Add(1)
	return w.config.Patience.SetSpeed(max(1, speed))
}

// Advance moves the clock by d, whether it runs or stands, and returns when it is there.
func (w *World) Advance(d time.Duration) {
	w.config.Clock.Advance(d)
	w.config.Patience.Advance(d)
	w.changes.Add(1)
}

// setClockLocked makes the clock stand or run as it should.
func (w *World) setClockLocked() {
	w.changes.Add(1)
	w.config.Clock.SetPaused(!w.ended && (w.held && !w.running || !w.held && w.stopped))
}

// Attend says that a page is open from which the world can be resumed, until the returned function is called, once.
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

// Leave says that the holder is about to go, and how long to wait for another; 0: [Unattended].
func (w *World) Leave(unattended time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attendLocked(unattended)
}

func (w *World) attendLocked(unattended time.Duration) {
	w.seen, w.unattended = w.config.Patience.Now(), cmp.Or(unattended, Unattended)
}

// Run is the watchdog. When ctx is done it opens the gate for good, so that what is to end can.
func (w *World) Run(ctx context.Context) {
	defer w.end()
	routine.Every(ctx, w.config.Patience, watchdogPeriod, func(context.Context) { w.look() })
}

// end opens the gate for good.
func (w *World) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.config.Gate.End()
	w.runOnLocked()
}

// look opens the gate if no page is left that could.
func (w *World) look() {
	if reason := w.forsaken(); reason != "" {
		w.config.Say(reason)
	}
}

// forsaken opens the gate if no page has been there for long enough, and says so; otherwise it returns "".
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

// Changes returns a number that is another one whenever [World.Status] may be, but for the passing of time.
func (w *World) Changes() uint64 { return w.changes.Load() + w.config.Gate.Changes() }

// Stations returns those at which goroutines can be held by a gate of their own, in path order.
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

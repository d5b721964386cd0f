// Package worldclock is the pipeline's clock. A user can stop, slow down, speed up and advance it; its timers follow.
//
// The fake clock of k8s.io/utils moves only in steps, and fires everything due within a step at once. This clock runs
// by itself, at any pace; when it is advanced by a minute, a ticker of a second ticks sixty times, with all effects.
//
//	wall  ------+-----------+------------------+------->
//	            | 1/10x     | stopped          | 1x
//	world ------+--+--------+------------------+------->     never backwards; jumps only in Advance
//
// # A program that is stopped as a whole
//
// At a breakpoint or after SIGSTOP, wall time goes on but the program does not. The clock must not count that time:
// otherwise every deadline would have passed when the program continues. Noticing the stop afterwards would be too
// late, because a goroutine that reads the clock may run first. So the clock depends on a heartbeat: Run beats every
// [beatPeriod], and if no beat comes, the world's time stops after [reach]. The first beat after a stop
// continues from there, and sends the stop's length to [Clock.Stops].
//
//	beats  +--+--+                           +--+--+>
//	world  ----------+ at most reach         +------->   goes on where it stopped
//
// # Goroutines and locks
//
// [New] starts nothing; timers fire while [Clock.Run] or [Clock.Advance] runs. mu is innermost: it is never held while
// code outside this package runs.
package worldclock

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"
)

// The limits on a clock's speed. It can also be stopped.
const (
	MinSpeed = 1.0 / 1000
	MaxSpeed = 10.0
)

const (
	beatPeriod = 100 * time.Millisecond
	reach      = 300 * time.Millisecond // maximum time that the clock runs without a beat, which may be late
	shortStop  = time.Second            // a shorter stop means a busy machine, and is not reported
)

// Clock is a clock whose pace can be changed. All methods are safe for concurrent use.
type Clock struct {
	// Sent under mu by the goroutine that notices a stop, never closed; holds 1: the newest stop may get lost.
	stops chan time.Duration

	// Sent under mu after a change of the pace or of the next timer, received by Run, never closed; one is enough.
	wake chan struct{}

	moves sync.Mutex // held while Advance moves the clock; taken before mu

	mu      sync.Mutex // guards the fields below; innermost
	frame   frame
	speed   float64 // the speed while the clock runs
	paused  bool
	moving  bool // whether Advance moves the clock, which then does not run by itself
	beating bool // whether Run is running
	timers  timers
}

// frame maps each time on the wall clock to the world's time, until the next frame.
type frame struct {
	world time.Time
	wall  time.Time
	pace  float64       // world seconds per second; 0: stopped
	reach time.Duration // maximum wall time that the clock runs without a new frame; 0: no limit
}

func (f *frame) at(wall time.Time) time.Time {
	elapsed := wall.Sub(f.wall)
	if f.reach > 0 {
		elapsed = min(elapsed, f.reach)
	}
	switch f.pace {
	case 0:
		return f.world
	case 1:
		return f.world.Add(elapsed)
	}
	return f.world.Add(time.Duration(float64(elapsed) * f.pace))
}

// New returns a clock that shows start and runs as fast as the wall clock.
func New(start time.Time) *Clock {
	// Round drops the monotonic reading, which counts real time: times of the world must not be compared by it.
	now := frame{world: start.Round(0), wall: time.Now(), pace: 1}
	return &Clock{stops: make(chan time.Duration, 1), wake: make(chan struct{}, 1), frame: now, speed: 1}
}

// Stops returns a channel for one receiver, which is never closed. While Run runs, the clock sends the length of each
// stop of the whole program that took a second or more, unless the clock was stopped. A stop is lost if the receiver
// has not received the previous one yet.
func (c *Clock) Stops() <-chan time.Duration { return c.stops }

// Run fires timers, and notices stops of the program, until ctx is done. Call it once.
func (c *Clock) Run(ctx context.Context) {
	set(c, &c.beating, true) // without a beat, the clock now stops after reach
	defer set(c, &c.beating, false)
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		// While the clock is stopped, due stays nil, so that only a change wakes the loop.
		var due <-chan time.Time
		if wait, ok := c.fire(); ok {
			alarm.Reset(wait)
			due = alarm.C
		}
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-due:
		}
	}
}

// Now returns the world's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

func (c *Clock) nowLocked() time.Time { return c.frame.at(time.Now()) }

// Since returns the world's time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// SetSpeed sets the speed, in world seconds per second. It returns an error if speed is not in [MinSpeed, MaxSpeed].
func (c *Clock) SetSpeed(speed float64) error {
	if !(speed >= MinSpeed && speed <= MaxSpeed) { // this form of the condition refuses NaN, too
		return fmt.Errorf("speed %v: want %v to %v", speed, MinSpeed, MaxSpeed)
	}
	set(c, &c.speed, speed)
	return nil
}

// SetPaused stops the clock, or lets it run.
func (c *Clock) SetPaused(paused bool) { set(c, &c.paused, paused) }

// set changes a field on which the pace or the reach depends, and then begins a new frame with both.
func set[V any](c *Clock, field *V, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*field = value
	c.beatLocked()
	c.rouseLocked()
}

// beatLocked begins a new frame at the present time. If the program was stopped until now, it sends the stop to Stops.
func (c *Clock) beatLocked() {
	old, wall := c.frame, time.Now()
	next := frame{world: old.at(wall), wall: wall, pace: c.speed}
	if c.paused || c.moving {
		next.pace = 0
	}
	if c.beating {
		next.reach = reach
	}
	c.frame = next
	if stopped := wall.Sub(old.wall); old.reach > 0 && old.pace > 0 && stopped >= shortStop {
		select {
		case c.stops <- stopped:
		default: // Stops' reader has not received the last one yet
		}
	}
}

// rouseLocked makes Run look again. The send never blocks.
func (c *Clock) rouseLocked() {
	select {
	case c.wake <- struct{}{}:
	default: // Run will look when it receives the one that is in the channel
	}
}

// fire fires all due timers, and returns the wall time until its next call is due; ok is false if the clock is stopped.
func (c *Clock) fire() (wait time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beatLocked()
	now := c.frame.world
	c.fireLocked(now)
	if c.frame.pace == 0 {
		return 0, false
	}
	wait = beatPeriod
	if next := c.timers.next(); next != nil {
		left := math.Ceil(float64(next.when.Sub(now)) / c.frame.pace)
		wait = time.Duration(min(left, float64(beatPeriod)))
	}
	return wait, true
}

// fireLocked fires the timers that are due at now, in the order of their times.
func (c *Clock) fireLocked(now time.Time) {
	for next := c.timers.next(); next != nil && !next.when.After(now); next = c.timers.next() {
		next.fireLocked(now)
	}
}

// Advance stops at every timer on the way, so that the goroutine that waited for the timer can act, and set the next
// one, before time goes on.
const (
	settleTime   = time.Millisecond // the length of a stop
	settleBudget = time.Second      // the time for all stops of one Advance; later stops are as short as possible
)

// Advance moves the clock forward by d, whether it runs or is stopped, and returns when the clock has arrived. The
// timers that are due on the way fire in order, each at its own time.
func (c *Clock) Advance(d time.Duration) {
	c.moves.Lock()
	defer c.moves.Unlock()
	set(c, &c.moving, true)
	defer set(c, &c.moving, false)
	target, began := c.Now().Add(d), time.Now()
	for c.stopBefore(target) {
		if time.Since(began) < settleBudget {
			time.Sleep(settleTime)
		} else {
			runtime.Gosched()
		}
	}
}

// stopBefore moves the clock to the next timer or to target, fires what is due, and reports whether target is ahead.
func (c *Clock) stopBefore(target time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop := target
	if next := c.timers.next(); next != nil && next.when.Before(target) {
		stop = next.when
	}
	if now := c.nowLocked(); stop.Before(now) { // a timer was due already, or the target has passed
		stop = now
	}
	c.frame = frame{world: stop, wall: time.Now()}
	c.fireLocked(stop)
	return stop.Before(target)
}

// Due is a timer that will fire.
type Due struct {
	In      time.Duration `json:"-"` // in the world's time
	Seconds float64       `json:"in"`
}

// Upcoming returns the next timers, at most n, in the order of their times.
func (c *Clock) Upcoming(n int) []Due {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.nowLocked()
	due := []Due{}
	for _, t := range c.timers[:min(n, len(c.timers))] {
		in := t.when.Sub(now)
		due = append(due, Due{In: in, Seconds: in.Seconds()})
	}
	return due
}

// State is a clock's time and pace.
type State struct {
	Now    time.Time `json:"now"`
	Speed  float64   `json:"speed"` // the speed while the clock runs
	Paused bool      `json:"paused"`
}

// State returns the clock's state.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return State{Now: c.nowLocked(), Speed: c.speed, Paused: c.paused}
}

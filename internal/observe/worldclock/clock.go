// Package worldclock is the clock of the pipeline: it can be stopped, slowed, hurried and moved on by hand, and timers
// made on it fire in its time.
//
// Why not the fake clock of k8s.io/utils: that one moves in steps only, and fires everything due within a step at once.
// A world that is watched has to run by itself, at any pace, and when it is moved by a minute, a ticker of a second has
// to tick sixty times, each time with those who wait on it getting their turn before the next.
//
//	wall  ──────┬───────────┬──────────────────┬───────►
//	            │ 1/10×     │ stopped          │ 1×
//	world ──────┴──┬────────┴──────────────────┴───────►     never backwards, no jumps but those that were asked for
//
// # A program that is stopped as a whole
//
// At a breakpoint, after SIGSTOP, or under a closed lid the wall's time goes on and the program does not. The clock
// must not count that time: every deadline would be over the moment the program goes on. To notice the stop afterwards
// would be too late, because a goroutine that asks for the time may run first. So the clock never runs ahead of its own
// heartbeat: Run beats each [beatPeriod], and without a beat the time stands still after [reach]. The beat that follows
// a stop goes on from there and tells [Clock.Stops] how long it was.
//
//	beats  ┬──┬──┬                           ┬──┬──┬►
//	world  ──────────┐ at most reach         └───────►   goes on where it stood
//
// # Goroutines and locks
//
// [New] starts nothing; timers fire while [Clock.Run] runs. mu is innermost: it is never held while code outside this
// package runs.
package worldclock

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// The speeds a clock can run at, besides being stopped.
const (
	MinSpeed = 1.0 / 1000
	MaxSpeed = 10.0
)

const (
	beatPeriod = 100 * time.Millisecond
	reach      = 300 * time.Millisecond // how far time runs on without a beat: a busy machine may be late with one
	shortStop  = time.Second            // what is shorter is a busy machine, and not told
)

// Clock is a clock whose pace can be changed. All methods are safe for concurrent use.
type Clock struct {
	// sent under mu by the first who notices a stop, never closed; holds 1: the newest may get lost
	stops chan time.Duration

	// sent by the goroutine that changes when the next timer is due, received by Run, never closed; one is enough
	wake chan struct{}

	moves sync.Mutex // held while the clock is moved by hand; taken before mu

	mu      sync.Mutex // guards the fields below; innermost
	frame   frame
	speed   float64 // when it runs
	paused  bool
	moving  bool // it is moved by hand: until then it does not run by itself
	beating bool // Run runs
	timers  timers
}

var _ clock.WithTicker = (*Clock)(nil)

// frame says how the world's time follows from the wall's, until the next one.
type frame struct {
	world time.Time
	wall  time.Time
	pace  float64       // world seconds per second; 0: stopped
	reach time.Duration // on the wall, how long it runs without another frame; 0: forever
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

// New returns a clock that shows start and runs as fast as the wall's.
func New(start time.Time) *Clock {
	// Without the monotonic reading, which would be the wall's: two times of this clock differ by what it says.
	now := frame{world: start.Round(0), wall: time.Now(), pace: 1}
	return &Clock{stops: make(chan time.Duration, 1), wake: make(chan struct{}, 1), frame: now, speed: 1}
}

// Stops returns the channel on which the clock tells how long the whole program was stopped, each time it goes on.
// It tells of stops of a second and more in which the clock would have run. One receiver is meant.
func (c *Clock) Stops() <-chan time.Duration { return c.stops }

// Run fires timers until ctx is done. It is called once.
func (c *Clock) Run(ctx context.Context) {
	set(c, &c.beating, true) // from here on there is a limit to how far the clock runs without a beat
	defer set(c, &c.beating, false)
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		// A receive from a nil channel never happens: while the clock stands, nothing wakes us but a change.
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

// Since returns how much of the world's time has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// SetSpeed sets how fast the clock runs when it runs. The error is that speed is not in [MinSpeed, MaxSpeed].
func (c *Clock) SetSpeed(speed float64) error {
	if !(speed >= MinSpeed && speed <= MaxSpeed) { // so that NaN is refused, too
		return fmt.Errorf("speed %v: want %v to %v", speed, MinSpeed, MaxSpeed)
	}
	set(c, &c.speed, speed)
	return nil
}

// SetPaused stops the clock, or lets it run.
func (c *Clock) SetPaused(paused bool) { set(c, &c.paused, paused) }

// set changes one of the fields that the pace, or its reach, follows from, and then both of these.
func set[V any](c *Clock, field *V, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*field = value
	c.beatLocked()
	c.rouseLocked()
}

// beatLocked lets the clock run on from here.
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
		default: // the last one has not been received yet
		}
	}
}

// rouseLocked has Run look again. The send never blocks.
func (c *Clock) rouseLocked() {
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// fire runs all due timers and returns the delay on the wall until it has to be called again; ok is false if the clock
// is stopped.
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

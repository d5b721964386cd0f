// Package worldclock is the clock of the pipeline: it can be stopped, slowed, hurried and moved on by hand, and whoever
// waits on it waits in its time.
//
// Why not the fake clock of k8s.io/utils: that one moves in steps only, and fires everything due within a step at once. A
// world that is watched has to run by itself, at any pace, and when it is moved by a minute, a ticker of a second has to
// tick sixty times, each time with those who wait on it getting their turn before the next.
//
//	wall  ──────┬───────────┬──────────────────┬───────►
//	            │ 1/10×     │ stopped          │ 1×
//	world ──────┴──┬────────┴──────────────────┴───────►     never backwards, no jumps but those that were asked for
//
// # Goroutines and locks
//
// [New] starts nothing; timers fire while [Clock.Run] runs. Reading the time takes no lock. mu guards the rest and is
// innermost: it is never held while anybody else's code runs.
package worldclock

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// The speeds a clock can run at, beside standing still.
const (
	MinSpeed = 1.0 / 1000
	MaxSpeed = 10.0
)

// Clock is a clock whose pace can be changed. All methods are safe for concurrent use.
type Clock struct {
	frame atomic.Pointer[frame] // replaced under mu, read without; nil for the instant in which the pace changes

	wake chan struct{} // sent by whoever changes when the next timer is due, received by Run, never closed; one is enough

	moves sync.Mutex // held by the one who moves the clock by hand; taken before mu

	mu     sync.Mutex // guards the fields below
	speed  float64    // when it runs
	paused bool
	moving bool // somebody moves it by hand: until then it does not run by itself
	timers timers
}

var _ clock.WithTicker = (*Clock)(nil)

// frame says how the world's time follows from the wall's, until the next one. Immutable.
type frame struct {
	world time.Time
	wall  time.Time
	pace  float64 // world seconds per second; 0: it stands
}

func (f *frame) now() time.Time {
	switch f.pace {
	case 0:
		return f.world
	case 1:
		return f.world.Add(time.Since(f.wall))
	}
	return f.world.Add(time.Duration(float64(time.Since(f.wall)) * f.pace))
}

// New returns a clock that shows start and runs as fast as the wall's.
func New(start time.Time) *Clock {
	c := &Clock{wake: make(chan struct{}, 1), speed: 1}
	// Without the monotonic reading, which would be the wall's: two times of this clock differ by what it says.
	c.frame.Store(&frame{world: start.Round(0), wall: time.Now(), pace: 1})
	return c
}

// Run fires timers until ctx is done. It is called once.
func (c *Clock) Run(ctx context.Context) {
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		// A receive from a nil channel never happens: while nothing is due by itself, nothing wakes us but a change.
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
	for {
		f := c.frame.Load()
		if f == nil {
			runtime.Gosched()
			continue
		}
		now := f.now()
		// Looked at again: read from a frame that was over already, now could lie ahead of what the next one begins with,
		// and time would seem to run backwards.
		if c.frame.Load() == f {
			return now
		}
	}
}

// Since returns how much of the world's time has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// SetSpeed sets how fast the clock runs when it runs. The error is that speed is not in [MinSpeed, MaxSpeed].
func (c *Clock) SetSpeed(speed float64) error {
	if !(speed >= MinSpeed && speed <= MaxSpeed) { // so that NaN is refused, too
		return fmt.Errorf("speed %v: want %v to %v", speed, MinSpeed, MaxSpeed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.speed = speed
	c.reframeLocked()
	return nil
}

// SetPaused stops the clock, or lets it run.
func (c *Clock) SetPaused(paused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = paused
	c.reframeLocked()
}

// reframeLocked makes the pace what it should be. It expects mu.
func (c *Clock) reframeLocked() {
	pace := c.speed
	if c.paused || c.moving {
		pace = 0
	}
	old := c.frame.Swap(nil) // before the time is read: whoever has read an older one has read an earlier time
	c.frame.Store(&frame{world: old.now(), wall: time.Now(), pace: pace})
	c.rouseLocked()
}

// rouseLocked has Run look again. It expects mu, though any caller would do: nobody waits.
func (c *Clock) rouseLocked() {
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// fire fires what is due, and returns how long on the wall until the next timer is; ok is false if nothing will be due by
// itself.
func (c *Clock) fire() (wait time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.frame.Load()
	now := f.now()
	c.fireLocked(now)
	next := c.timers.next()
	if next == nil || f.pace == 0 {
		return 0, false
	}
	left := math.Ceil(float64(next.when.Sub(now)) / f.pace)
	return time.Duration(min(left, float64(time.Hour))), true // an hour later it looks again
}

// fireLocked fires what is due at now, in the order of its times. It expects mu.
func (c *Clock) fireLocked(now time.Time) {
	for next := c.timers.next(); next != nil && !next.when.After(now); next = c.timers.next() {
		next.fireLocked(now)
	}
}

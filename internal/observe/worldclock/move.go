package worldclock

import (
	"runtime"
	"time"

	"listwatch/internal/observe/routine"
)

// Moving the clock by hand stops at every timer on the way, so that the goroutine that waited for it can act, and set
// the next one, before the time goes on.
const (
	settleTime   = time.Millisecond // how long a stop is
	settleBudget = time.Second      // for all stops of one move; then they are as short as can be
)

// Advance moves the clock forward by d, whether it runs or is stopped, and returns when it is there. The timers that
// are due on the way fire in order, each at its own time.
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

// stopBefore takes the clock to the next timer before target, or to target, and reports whether target is still ahead.
func (c *Clock) stopBefore(target time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop := target
	if next := c.timers.next(); next != nil && next.when.Before(target) {
		stop = next.when
	}
	if now := c.nowLocked(); stop.Before(now) { // something was due already, or the target has passed
		stop = now
	}
	c.frame = frame{world: stop, wall: time.Now()}
	c.fireLocked(stop)
	return stop.Before(target)
}

// Due is a timer that is going to fire.
type Due struct {
	In      time.Duration `json:"-"` // of the world's time
	Seconds float64       `json:"in"`
	Who     string        `json:"who"`  // the function that set it: "pipeline.(*Demo).Run"
	Line    string        `json:"line"` // where: "demo.go:42"
}

// Upcoming returns the next timers, at most n, the first one first.
func (c *Clock) Upcoming(n int) []Due {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.nowLocked()
	due := []Due{}
	for _, t := range c.timers[:min(n, len(c.timers))] {
		frame, _ := runtime.CallersFrames([]uintptr{t.maker}).Next()
		who, line := routine.Place(frame)
		in := t.when.Sub(now)
		due = append(due, Due{In: in, Seconds: in.Seconds(), Who: who, Line: line})
	}
	return due
}

// State is what a clock says of itself.
type State struct {
	Now    time.Time `json:"now"`
	Speed  float64   `json:"speed"` // when it runs
	Paused bool      `json:"paused"`
}

// State returns the clock's state.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return State{Now: c.nowLocked(), Speed: c.speed, Paused: c.paused}
}

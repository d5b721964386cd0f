package worldclock

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// timer is one timer or ticker of a clock. Like those of package time since Go 1.23, it has no stale value to offer
// once it has been stopped or set again.
type timer struct {
	// Set when it is made, never changed.
	clock  *Clock
	ch     chan time.Time // sent by fireLocked, never closed; room for one: a receiver that is late misses a tick
	period time.Duration  // 0: fires once
	maker  uintptr        // where it was made

	// Guarded by clock.mu.
	when time.Time
}

var (
	_ clock.Timer  = (*timer)(nil)
	_ clock.Ticker = ticker{}
)

// ticker is a timer with the methods of a ticker.
type ticker struct{ *timer }

// Stop ends the ticker.
func (t ticker) Stop() { t.timer.Stop() }

// NewTimer returns a timer that fires once, when d has passed in the world.
func (c *Clock) NewTimer(d time.Duration) clock.Timer { return c.start(d, 0) }

// NewTicker returns a ticker that fires every d. It panics if d is not positive, as time.NewTicker does.
func (c *Clock) NewTicker(d time.Duration) clock.Ticker {
	if d <= 0 {
		panic("worldclock: NewTicker: the period must be positive")
	}
	return ticker{c.start(d, d)}
}

// After returns the channel of a timer that cannot be stopped.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.start(d, 0).ch }

// Tick returns the channel of a ticker that cannot be stopped.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.start(d, d).ch }

// Sleep returns when d has passed in the world.
func (c *Clock) Sleep(d time.Duration) { <-c.start(d, 0).ch }

// start makes a timer and sets it. It is called by what the user calls, and by nothing else: it looks two callers up.
func (c *Clock) start(d, period time.Duration) *timer {
	var makers [2]uintptr
	runtime.Callers(3, makers[:]) // not runtime.Callers itself, not start, not our method
	maker := makers[0]
	if strings.HasPrefix(runtime.FuncForPC(maker).Name(), "listwatch/internal/observe/routine.") {
		maker = makers[1] // who waits, and not the helper that it waits with
	}
	t := &timer{clock: c, ch: make(chan time.Time, 1), period: period, maker: maker}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.setLocked(d)
	return t
}

// C returns the channel on which the timer fires.
func (t *timer) C() <-chan time.Time { return t.ch }

// Stop reports whether it has kept the timer from being noticed.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stopLocked()
}

// Reset sets the timer again. It reports whether it was set or had fired unnoticed.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	pending := t.stopLocked()
	t.setLocked(d)
	return pending
}

func (t *timer) stopLocked() (pending bool) {
	pending = t.clock.timers.remove(t)
	select {
	case <-t.ch: // no send can be under way: sends are done under the lock
		pending = true
	default:
	}
	return pending
}

// setLocked sets the timer. What is due at once fires at once, also while the clock is stopped.
func (t *timer) setLocked(d time.Duration) {
	now := t.clock.nowLocked()
	t.when = now.Add(d)
	if d <= 0 {
		t.when = now
		t.sendLocked(now)
		return
	}
	t.clock.timers.add(t)
	if t.clock.timers.next() == t {
		t.clock.rouseLocked()
	}
}

// fireLocked fires the timer, which is the next one. A ticker that is late skips the ticks it has missed.
func (t *timer) fireLocked(now time.Time) {
	t.clock.timers.remove(t)
	if t.period > 0 {
		missed := now.Sub(t.when) / t.period
		t.when = t.when.Add((missed + 1) * t.period)
		t.clock.timers.add(t)
	}
	t.sendLocked(now)
}

func (t *timer) sendLocked(now time.Time) {
	select {
	case t.ch <- now:
	default: // the last one has not been noticed yet
	}
}

// timers are in the order of their times; of equal ones, the one that was set first comes first. There are some
// thousands at most, and they are set far less often than events flow: a list is fast enough.
type timers []*timer

func (ts timers) next() *timer {
	if len(ts) == 0 {
		return nil
	}
	return ts[0]
}

func (ts *timers) add(t *timer) {
	at, _ := slices.BinarySearchFunc(*ts, t.when, func(each *timer, when time.Time) int {
		if each.when.After(when) {
			return 1
		}
		return -1
	})
	*ts = slices.Insert(*ts, at, t)
}

// remove reports whether the timer was there.
func (ts *timers) remove(t *timer) bool {
	i := slices.Index(*ts, t)
	if i < 0 {
		return false
	}
	*ts = slices.Delete(*ts, i, i+1)
	return true
}

package worldclock

import (
	"slices"
	"time"

	"k8s.io/utils/clock"
)

// timer is one timer or ticker of a clock. As in package time, a receiver gets no stale value after Stop or Reset.
type timer struct {
	// Set by start, never changed.
	clock  *Clock
	ch     chan time.Time // sent by sendLocked, never closed; room for one, so a late receiver misses ticks
	period time.Duration  // 0: the timer fires once

	// Guarded by clock.mu.
	when time.Time
}

var (
	_ clock.Timer  = (*timer)(nil)
	_ clock.Ticker = ticker{}
)

// ticker is a timer with the methods of a ticker.
type ticker struct{ *timer }

func (t ticker) Stop() { t.timer.Stop() }

// NewTimer returns a timer that fires once, when d has passed on the world's clock.
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

// Tick returns the channel of a ticker that cannot be stopped. It ticks only once if d is not positive.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.start(d, d).ch }

// Sleep returns after d has passed on the world's clock.
func (c *Clock) Sleep(d time.Duration) { <-c.start(d, 0).ch }

// start makes a timer that fires after d and, unless period is 0, every period from then on.
func (c *Clock) start(d, period time.Duration) *timer {
	t := &timer{clock: c, ch: make(chan time.Time, 1), period: period}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.setLocked(d)
	return t
}

func (t *timer) C() <-chan time.Time { return t.ch }

// Stop stops the timer. It returns false if the timer was stopped already, or if its time has been received.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stopLocked()
}

// Reset sets the timer again. It returns true if the timer was set, or had fired and its time was not received.
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
	case <-t.ch: // no send can happen meanwhile: it would need the lock
		pending = true
	default:
	}
	return pending
}

// setLocked sets the timer. A timer that is due at once fires at once, even while the clock is stopped.
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

// fireLocked fires the timer, which is the next one, and sets a ticker again. A late ticker skips the missed ticks.
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
	default: // the user has not received the last one yet
	}
}

// timers are sorted by their times; among equal times, the timer that was set first comes first. There are at most some
// thousands, and they are set far less often than events flow, so a list is fast enough.
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

// remove removes a timer, and reports whether it was in the list.
func (ts *timers) remove(t *timer) bool {
	i := slices.Index(*ts, t)
	if i < 0 {
		return false
	}
	*ts = slices.Delete(*ts, i, i+1)
	return true
}

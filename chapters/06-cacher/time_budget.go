package cacher

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	refreshPerSecond = 50 * time.Millisecond  // upstream's: at most 5 % of the time is lost to slow watchers
	maxBudget        = 100 * time.Millisecond // upstream's: and never more than this for one event
)

// timeBudget is the time that slow watchers may cost the others of a resource. For an event that finds a watcher full,
// the dispatcher takes all of it, and gives back the rest. It always grows, up to a bound, even during a dispatch. It
// begins at zero: a watcher that is slow at once is evicted at once.
//
// No goroutine makes it grow: each look adds the growth since the last look.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/time_budget.go: timeBudgetImpl
type timeBudget struct {
	// Set by newTimeBudget, never changed.
	clock clock.PassiveClock

	mu     sync.Mutex // guards the fields below; a leaf
	budget time.Duration
	last   time.Time // the time at which budget was right
}

func newTimeBudget(clk clock.PassiveClock) *timeBudget {
	return &timeBudget{clock: clk, last: clk.Now()}
}

// takeAvailable takes the whole budget.
func (t *timeBudget) takeAvailable() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accrueLocked()
	taken := t.budget
	t.budget = 0
	return taken
}

// returnUnused gives back the unused part. A negative amount, more than was taken, is ignored.
func (t *timeBudget) returnUnused(unused time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.budget = min(t.budget+max(unused, 0), maxBudget)
}

// available returns the present budget.
func (t *timeBudget) available() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accrueLocked()
	return t.budget
}

func (t *timeBudget) accrueLocked() {
	now := t.clock.Now()
	elapsed := max(now.Sub(t.last), 0)
	t.budget = min(t.budget+elapsed/(time.Second/refreshPerSecond), maxBudget)
	t.last = now
}

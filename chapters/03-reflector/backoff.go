package reflector

import (
	"time"

	"k8s.io/utils/clock"
)

// How long a reflector waits when something went wrong: 0.8 s, 1.6 s, … 25.6 s, 30 s, 30 s, each multiplied by a
// random number in [1, 2) so that a thousand clients of one server do not come back in step.
const (
	backoffInit   = 800 * time.Millisecond
	backoffMax    = 30 * time.Second
	backoffFactor = 2
	backoffReset  = 2 * time.Minute // this long without waiting, and the server counts as healthy again
)

// backoff hands out delays. It belongs to the goroutine that runs the reflector.
//
// Upstream: k8s.io/apimachinery/pkg/util/wait/backoff.go: Backoff
// Differs: the sequence begins again when two minutes have passed since the end of the last
// delay, which is what upstream's comment promises. Upstream measures from the last time the
// sequence began again, so that in a lasting outage its delays drop from 30 s back to 0.8 s
// every two minutes.
type backoff struct {
	// Set by New, never changed.
	clock  clock.Clock
	jitter func() float64 // in [0, 1)

	next  time.Duration // before jitter; 0: the sequence has not begun
	until time.Time     // when the last delay was or will be over
}

// delay returns how long to wait now, and counts on the caller to do so.
func (b *backoff) delay() time.Duration {
	now := b.clock.Now()
	if b.next == 0 || now.Sub(b.until) >= backoffReset {
		b.next = backoffInit
	}
	delay := b.next + time.Duration(b.jitter()*float64(b.next))
	b.next = min(b.next*backoffFactor, backoffMax)
	b.until = now.Add(delay)
	return delay
}

package reflector

import (
	"time"

	"k8s.io/utils/clock"
)

// internalErrorReset is how long without an internal error makes the next one the first again.
const internalErrorReset = time.Minute

// retryWithDeadline remembers since when errors of one kind have been coming, and for how long it is still worth
// insisting. Not safe for concurrent use.
//
// Upstream: k8s.io/client-go/tools/cache/retry_with_deadline.go: RetryWithDeadline
type retryWithDeadline struct {
	// Set by its maker, never changed.
	maxRetryDuration time.Duration // 0: never insist
	minResetPeriod   time.Duration
	isRetryable      func(error) bool
	clock            clock.PassiveClock

	firstErrorTime, lastErrorTime time.Time // zero: there was none
}

// After takes note of how an attempt ended. Only errors of the kind count; success does not reset anything, because a
// server may accept every watch and fail each a moment later.
//
// Upstream: k8s.io/client-go/tools/cache/retry_with_deadline.go: RetryWithDeadline
func (r *retryWithDeadline) After(err error) {
	if !r.isRetryable(err) {
		return
	}
	now := r.clock.Now()
	if r.firstErrorTime.IsZero() || now.Sub(r.lastErrorTime) >= r.minResetPeriod {
		r.firstErrorTime = now
	}
	r.lastErrorTime = now
}

// ShouldRetry reports whether to go on. Having said no it forgets, so that the next error begins a new period.
//
// Upstream: k8s.io/client-go/tools/cache/retry_with_deadline.go: RetryWithDeadline
func (r *retryWithDeadline) ShouldRetry() bool {
	if r.maxRetryDuration <= 0 {
		return false
	}
	if r.clock.Now().Sub(r.firstErrorTime) <= r.maxRetryDuration {
		return true
	}
	r.firstErrorTime, r.lastErrorTime = time.Time{}, time.Time{}
	return false
}

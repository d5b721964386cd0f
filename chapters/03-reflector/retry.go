package reflector

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// internalErrorReset is how long without an internal error makes the next one the first again.
const internalErrorReset = time.Minute

// retryWithDeadline remembers since when internal errors have been coming, and for how long it is still worth
// insisting. Not safe for concurrent use.
//
// Upstream: k8s.io/client-go/tools/cache/retry_with_deadline.go: RetryWithDeadline
// Differs: for internal errors only, which is all that upstream's reflector uses it for.
type retryWithDeadline struct {
	// Set by its maker, never changed.
	clock            clock.PassiveClock
	maxRetryDuration time.Duration // 0: never insist

	firstErrorTime, lastErrorTime time.Time // zero: there was none
}

// After takes note of how an attempt ended. Only internal errors count; success does not reset anything, because a
// server may accept every watch and fail each a moment later.
//
// Upstream: k8s.io/client-go/tools/cache/retry_with_deadline.go: RetryWithDeadline
func (r *retryWithDeadline) After(err error) {
	if !apierrors.IsInternalError(err) {
		return
	}
	now := r.clock.Now()
	if r.firstErrorTime.IsZero() || now.Sub(r.lastErrorTime) >= internalErrorReset {
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

package controllers

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
)

// The default limits of a controller's retries, upstream's.
const (
	baseDelay   = 5 * time.Millisecond
	maxDelay    = 1000 * time.Second
	bucketQPS   = 10
	bucketBurst = 100
)

// RateLimitingQueue is a [DelayingQueue] that knows how long a key that failed should wait:
// longer each time for one key, and for all keys together no more than ten a second once a
// burst of a hundred is spent. It is what a controller means by its workqueue.
//
// Upstream: k8s.io/client-go/util/workqueue/rate_limiting_queue.go: rateLimitingType
// Differs: upstream's two default limiters are built in: [RateLimitingQueue.when] and a bucket.
type RateLimitingQueue struct {
	*DelayingQueue

	// Set by NewRateLimitingQueue, never changed.
	overall *rate.Limiter // a bucket of tokens: a burst at once, then so many a second

	failuresMu sync.Mutex     // guards failures; innermost
	failures   map[string]int // by key
}

// NewRateLimitingQueue returns an empty queue with upstream's default limits.
//
// Upstream: k8s.io/client-go/util/workqueue/default_rate_limiters.go: DefaultTypedControllerRateLimiter
func NewRateLimitingQueue(clk clock.WithTicker, p *probe.Probe) *RateLimitingQueue {
	return &RateLimitingQueue{
		DelayingQueue: NewDelayingQueue(clk, p),
		overall:       rate.NewLimiter(bucketQPS, bucketBurst),
		failures:      map[string]int{},
	}
}

// AddRateLimited adds key after the longer of what the two limiters ask for, and returns that
// delay. It counts as a failure of key until Forget. The worker still calls Done.
//
// Upstream: k8s.io/client-go/util/workqueue/rate_limiting_queue.go: (*rateLimitingType).AddRateLimited
// Differs: returns the delay, so that it can be shown.
func (q *RateLimitingQueue) AddRateLimited(key string) time.Duration {
	// Both are asked, always: the bucket must give a token, if need be one of the future, even
	// when the key's own delay is the longer.
	now := q.clock.Now()
	untilToken := q.overall.ReserveN(now, 1).DelayFrom(now)
	delay := max(q.when(key), untilToken)
	q.AddAfter(key, delay)
	return delay
}

// Forget makes the next failure of key the first one. A retry that waits still comes. Forget is about the key's past,
// Done about the worker's hands: neither is a substitute for the other.
//
// Upstream: k8s.io/client-go/util/workqueue/rate_limiting_queue.go: (*rateLimitingType).Forget
func (q *RateLimitingQueue) Forget(key string) {
	q.failuresMu.Lock()
	defer q.failuresMu.Unlock()
	delete(q.failures, key)
}

// when counts one more failure of key and returns how long it should wait: twice as long with each failure, from 5 ms
// up to a thousand seconds.
//
// Upstream: k8s.io/client-go/util/workqueue/default_rate_limiters.go: (*TypedItemExponentialFailureRateLimiter).When
func (q *RateLimitingQueue) when(key string) time.Duration {
	q.failuresMu.Lock()
	defer q.failuresMu.Unlock()
	failures := q.failures[key]
	q.failures[key] = failures + 1
	delay := baseDelay
	for range failures {
		delay = min(2*delay, maxDelay)
	}
	return delay
}

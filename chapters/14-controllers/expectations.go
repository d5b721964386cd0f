package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// ExpectationsTimeout is how long a controller waits to see its own writes before it acts without having seen them.
const ExpectationsTimeout = 5 * time.Minute

// ControllerExpectations knows, for each object that a controller acts for, which of the
// controller's own writes its informer has not shown yet. Until it has, the informer's store is
// too old to be counted. Safe for concurrent use: the worker expects, the handlers observe.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_utils.go: UIDTrackingControllerExpectations
// Differs: one type and one lock where upstream has two types, stores and atomic counters. The key
// is the UID of the object; upstream's is its name. Forgets what has come true.
type ControllerExpectations struct {
	clock clock.PassiveClock

	mu           sync.Mutex // guards expectations; innermost
	expectations map[string]ControlleeExpectations
}

// ControlleeExpectations is what one controller waits to see.
type ControlleeExpectations struct {
	add       int              // creations
	del       sets.Set[string] // keys of pods: one is seen as marked, and seen again as gone
	timestamp time.Time
}

// NewControllerExpectations returns expectations of nothing.
func NewControllerExpectations(clk clock.PassiveClock) *ControllerExpectations {
	return &ControllerExpectations{clock: clk, expectations: map[string]ControlleeExpectations{}}
}

// SatisfiedExpectations reports whether the informer has shown all that was expected, or has
// had five minutes for it: what never comes must not block the controller for ever.
func (r *ControllerExpectations) SatisfiedExpectations(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	exp, waits := r.expectations[key]
	return !waits || r.clock.Since(exp.timestamp) > ExpectationsTimeout
}

// ExpectCreations is called before the first of n creations: the informer may be faster than the answer.
func (r *ControllerExpectations) ExpectCreations(key string, n int) { r.set(key, n) }

// ExpectDeletions is called before the first of the pods is deleted. It replaces what was expected, as ExpectCreations.
func (r *ControllerExpectations) ExpectDeletions(key string, pods []string) { r.set(key, 0, pods...) }

func (r *ControllerExpectations) set(key string, add int, del ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expectations[key] = ControlleeExpectations{add, sets.New(del...), r.clock.Now()}
}

// CreationObserved is called when the informer shows a new pod, or when a creation has failed.
func (r *ControllerExpectations) CreationObserved(key string) { r.lower(key, 1, "") }

// DeletionObserved is called when the informer shows that a pod is marked or gone, or when its deletion has failed.
func (r *ControllerExpectations) DeletionObserved(key, pod string) { r.lower(key, 0, pod) }

func (r *ControllerExpectations) lower(key string, add int, del string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	exp := r.expectations[key]
	exp.add -= add
	exp.del.Delete(del)
	if exp.add <= 0 && exp.del.Len() == 0 {
		delete(r.expectations, key)
		return
	}
	r.expectations[key] = exp
}

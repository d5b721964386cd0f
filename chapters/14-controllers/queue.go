package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"listwatch/internal/observe/probe"
)

// Queue is a work queue of keys. It answers one question, "which key should a worker look at
// next?", and promises two things: a key that is added any number of times before a worker
// takes it is taken once, and no key is ever in the hands of two workers. All methods are safe
// for concurrent use; only Get blocks.
//
// A key is in one of four states, which dirty and processing tell apart:
//
//	                Add                  Get                     Add
//	(unknown) ────────────► waiting ────────────► being worked ────────────► being worked,
//	   ▲                 dirty, queue              processing                wanted again
//	   │                       ▲                       │                   dirty, processing
//	   └─────── Done ──────────┼───────────────────────┘                          │
//	                           └─────────────────── Done ──────────────────────────┘
//
// Upstream: k8s.io/client-go/util/workqueue/queue.go: Typed
// Differs: keys are strings, not any comparable type; the order is always first in, first out
// (upstream lets a [Queue] be swapped for a priority queue); probes instead of metrics, hence
// no 500 ms metrics goroutine.
type Queue struct {
	// Set by NewQueue, never changed.
	probe *probe.Probe

	mu         sync.Mutex       // guards the fields below; innermost but for the probe log's
	cond       *sync.Cond       // of mu: queue grew, or shutdown
	queue      []string         // the order. Every key in it is dirty and none is processing
	dirty      sets.Set[string] // keys to be looked at: queued, or waiting for their Done
	processing sets.Set[string] // keys in the hands of a worker, from Get to Done

	shuttingDown bool // Add is ignored; Get hands out what is left, then says so
}

// NewQueue returns an empty queue. A nil probe is off.
func NewQueue(p *probe.Probe) *Queue {
	q := &Queue{probe: p, dirty: sets.New[string](), processing: sets.New[string]()}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// Add asks for a look at key, and does not block. It does nothing after ShutDown.
//
// Upstream: k8s.io/client-go/util/workqueue/queue.go: (*Typed).Add
func (q *Queue) Add(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		return
	}
	// A key that is being worked on only becomes dirty. Were it queued too, a second worker
	// could take it, and the two would act on one object at once; so its Done queues it.
	if !q.dirty.Has(key) && !q.processing.Has(key) {
		q.pushLocked(key)
	}
	q.dirty.Insert(key)
	q.reportLocked(key)
}

// pushLocked puts key at the end of the line, for one worker.
func (q *Queue) pushLocked(key string) {
	q.queue = append(q.queue, key)
	q.cond.Signal()
}

// reportLocked tells the probe that key was added, and how many wait now.
func (q *Queue) reportLocked(key string) {
	q.probe.At(probe.WorkAdded, key, 0, len(q.queue), 0)
}

// Get blocks until there is a key and hands it to the caller, who must call Done with it. After
// ShutDown it hands out what is still queued, and then returns shutdown true: the worker ends.
//
// Upstream: k8s.io/client-go/util/workqueue/queue.go: (*Typed).Get
func (q *Queue) Get() (key string, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) == 0 && !q.shuttingDown {
		q.probe.At(probe.WorkWaited, "", 0)
		q.cond.Wait() // lets go of mu; woken, it may find that another worker has taken the key
		q.probe.At(probe.WorkWoken, "", 0)
	}
	if len(q.queue) == 0 {
		return "", true
	}
	key = q.queue[0]
	q.queue = q.queue[1:]
	q.processing.Insert(key)
	// Before the work: an Add from here on may come too late for it, and must count.
	q.dirty.Delete(key)
	q.probe.At(probe.WorkGot, key, 0, len(q.queue), 0)
	return key, false
}

// Done releases a key that Get handed out. If the key was added meanwhile, Done queues it
// again, at the end, and does so even after ShutDown: the addition was accepted before.
//
// Upstream: k8s.io/client-go/util/workqueue/queue.go: (*Typed).Done
func (q *Queue) Done(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.processing.Delete(key)
	q.probe.At(probe.WorkDone, key, 0)
	if q.dirty.Has(key) {
		q.pushLocked(key)
		q.reportLocked(key)
	}
}

// ShutDown makes the queue ignore every further Add. It does not wait. Get hands out what is queued, and what Done
// queues again, and then tells the workers to end. It may be called more than once.
//
// Upstream: k8s.io/client-go/util/workqueue/queue.go: (*Typed).ShutDown
// Differs: there is no ShutDownWithDrain, which also waits until no key is in the hands of a
// worker: for ever after a forgotten Done, unless ShutDown is called as well.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shuttingDown = true
	q.cond.Broadcast()
}

// QueueSnapshot is the state of a work queue at one moment.
type QueueSnapshot struct {
	Len        int      `json:"len"`        // keys that wait for a worker
	Processing []string `json:"processing"` // keys in the hands of workers, sorted
	Dirty      int      `json:"dirty"`      // keys wanted: the waiting ones, and those to be queued again at their Done
	Waiting    int      `json:"waiting"`    // keys whose delay has not run out, see [DelayingQueue]
}

// Snapshot returns the state of the queue.
func (q *Queue) Snapshot() QueueSnapshot {
	q.mu.Lock()
	defer q.mu.Unlock()
	return QueueSnapshot{Len: len(q.queue), Processing: sets.List(q.processing), Dirty: len(q.dirty)}
}

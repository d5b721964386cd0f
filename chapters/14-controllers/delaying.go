package controllers

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
)

// waitingForAddSize is how many AddAfter may be ahead of the waiting loop before the next one blocks.
const waitingForAddSize = 1000

// DelayingQueue is a [Queue] to which keys can be added later. A waiting loop, one goroutine,
// keeps the keys whose time has not come in a heap, with the earliest time first. A key waits
// at most once, with the earliest time asked for.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: delayingType
// Differs: the waiting loop is started by Run, not by the constructor; it ends the queue when
// its context ends. Upstream's loop also wakes every ten seconds, as a precaution.
type DelayingQueue struct {
	*Queue

	// Set by NewDelayingQueue, never changed.
	clock         clock.WithTicker
	waitingForAdd chan *waitFor // sent by AddAfter, never closed; 1000: handlers do not wait
	stop          chan struct{} // closed by ShutDown; ends Run and every blocked AddAfter
	stopOnce      sync.Once

	nWaiting atomic.Int64 // length of waiting, for Snapshot

	// Owned by the goroutine in Run.
	waiting waitForPriorityQueue
	known   map[string]*waitFor // what is in waiting, by key
}

// NewDelayingQueue returns an empty queue. Delays only run out while Run runs.
func NewDelayingQueue(clk clock.WithTicker, p *probe.Probe) *DelayingQueue {
	return &DelayingQueue{
		Queue:         NewQueue(p),
		clock:         clk,
		waitingForAdd: make(chan *waitFor, waitingForAddSize),
		stop:          make(chan struct{}),
		known:         map[string]*waitFor{},
	}
}

// AddAfter adds key when delay has run out, at once if it is not positive. If the key waits already, the earlier of
// the two times counts; no Add, Done or Forget cancels it. AddAfter blocks only while a thousand others are ahead of
// the waiting loop. It does nothing after ShutDown.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: (*delayingType).AddAfter
func (q *DelayingQueue) AddAfter(key string, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	entry := &waitFor{key: key, readyAt: q.clock.Now().Add(delay)}
	select {
	case <-q.stop:
	case q.waitingForAdd <- entry: // perhaps after ShutDown, too: then it is lost there
	}
}

// ShutDown is [Queue.ShutDown] for the waiting loop too: keys that still wait are dropped.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: (*delayingType).ShutDown
func (q *DelayingQueue) ShutDown() {
	q.Queue.ShutDown()
	q.stopOnce.Do(func() { close(q.stop) })
}

// Run is the waiting loop. It must be called once, and returns when the queue is shut down. When ctx is done it shuts
// the queue down itself: workers that wait in Get wait for no context.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: (*delayingType).waitingLoop
func (q *DelayingQueue) Run(ctx context.Context) {
	defer q.ShutDown()
	for q.wait(ctx) {
		q.addReady()
	}
}

// wait blocks until the first of waiting is ready, or AddAfter has sent something, which it
// takes in. It returns false at the end.
func (q *DelayingQueue) wait(ctx context.Context) bool {
	// A receive from a nil channel blocks forever: with nothing waiting, that case is off.
	var nextReadyAt <-chan time.Time
	if len(q.waiting) > 0 {
		timer := q.clock.NewTimer(q.waiting[0].readyAt.Sub(q.clock.Now()))
		defer timer.Stop()
		nextReadyAt = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-q.stop:
		return false
	case entry := <-q.waitingForAdd:
		q.takeIn(entry)
	case <-nextReadyAt:
	}
	return true
}

// takeIn inserts entry and everything else AddAfter has sent so far, so that a burst costs one new timer, not one each.
func (q *DelayingQueue) takeIn(entry *waitFor) {
	q.insert(entry)
	for {
		select {
		case entry = <-q.waitingForAdd:
			q.insert(entry)
		default:
			return
		}
	}
}

// insert lets a key wait, or moves its time forward if it waits already. A time is never moved
// back: the caller that asked for the earlier one was promised it.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: insert
func (q *DelayingQueue) insert(entry *waitFor) {
	if existing, ok := q.known[entry.key]; ok {
		if entry.readyAt.Before(existing.readyAt) {
			existing.readyAt = entry.readyAt
			heap.Fix(&q.waiting, existing.index)
		}
		return
	}
	q.known[entry.key] = entry
	heap.Push(&q.waiting, entry)
	q.nWaiting.Store(int64(len(q.waiting)))
}

// addReady moves every key whose time has come to the queue, earliest first.
func (q *DelayingQueue) addReady() {
	now := q.clock.Now()
	for len(q.waiting) > 0 && !q.waiting[0].readyAt.After(now) {
		first := heap.Pop(&q.waiting).(*waitFor)
		delete(q.known, first.key)
		q.nWaiting.Store(int64(len(q.waiting)))
		q.Add(first.key)
	}
}

// Snapshot returns the state of the queue, waiting keys included.
func (q *DelayingQueue) Snapshot() QueueSnapshot {
	snapshot := q.Queue.Snapshot()
	snapshot.Waiting = int(q.nWaiting.Load())
	return snapshot
}

// waitFor is a key and the time at which it is to be added.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: waitFor
type waitFor struct {
	key     string
	readyAt time.Time
	index   int // in the heap
}

// waitForPriorityQueue implements [heap.Interface]. The first entry is the one with the earliest
// time; of entries with one time it is the one with the least key.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: waitForPriorityQueue
// Differs: upstream does not compare keys.
type waitForPriorityQueue []*waitFor

func (pq waitForPriorityQueue) Len() int { return len(pq) }

func (pq waitForPriorityQueue) Less(i, j int) bool {
	return cmp.Or(pq[i].readyAt.Compare(pq[j].readyAt), cmp.Compare(pq[i].key, pq[j].key)) < 0
}

func (pq waitForPriorityQueue) Swap(i, j int) {
	pq[i], pq[j] = pq[j], pq[i]
	pq[i].index, pq[j].index = i, j
}

// Push and Pop are for the package heap, which keeps the order.
func (pq *waitForPriorityQueue) Push(entry any) {
	added := entry.(*waitFor)
	added.index = len(*pq)
	*pq = append(*pq, added)
}

// Pop removes the last entry.
func (pq *waitForPriorityQueue) Pop() any {
	last := len(*pq) - 1
	entry := (*pq)[last]
	(*pq)[last] = nil // the array outlives the cut
	*pq = (*pq)[:last]
	return entry
}

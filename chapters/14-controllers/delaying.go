package controllers

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
)

const (
	// maxWait is the heartbeat of the waiting loop. Nothing depends on it while timers fire as asked; it bounds the
	// damage when they do not.
	maxWait = 10 * time.Second

	// waitingForAddSize is how many AddAfter may be ahead of the waiting loop before the next one blocks.
	waitingForAddSize = 1000
)

// DelayingQueue is a [Queue] to which keys can be added later. A waiting loop, one goroutine,
// keeps the keys whose time has not come in a heap ordered by that time. A key waits at most
// once, with the earliest time asked for.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: delayingType
// Differs: the waiting loop is started by Run, not by the constructor.
type DelayingQueue struct {
	*Queue

	// Set by NewDelayingQueue, never changed.
	clock         clock.WithTicker
	waitingForAdd chan waitFor  // sent by AddAfter, never closed; 1000: handlers do not wait
	stop          chan struct{} // closed by ShutDown; ends Run and every blocked AddAfter
	stopOnce      sync.Once

	nWaiting atomic.Int64 // length of waiting, for Snapshot

	// Owned by the goroutine in Run.
	waiting waitForPriorityQueue
	known   map[string]*waitFor // the entries of waiting by key
	timer   clock.Timer         // until the head of waiting is ready; nil if there is none
}

// NewDelayingQueue returns an empty queue. Delays only run out while Run runs.
func NewDelayingQueue(clk clock.WithTicker, p *probe.Probe) *DelayingQueue {
	return &DelayingQueue{
		Queue:         NewQueue(p),
		clock:         clk,
		waitingForAdd: make(chan waitFor, waitingForAddSize),
		stop:          make(chan struct{}),
		known:         map[string]*waitFor{},
	}
}

// AddAfter adds key when delay has run out, at once if it is not positive. If the key waits already, the earlier of
// the two times counts. It blocks only while a thousand others are ahead of the waiting loop.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: (*delayingType).AddAfter
func (q *DelayingQueue) AddAfter(key string, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	if q.ShuttingDown() {
		return
	}
	entry := waitFor{key: key, readyAt: q.clock.Now().Add(delay)}
	select {
	case <-q.stop:
	case q.waitingForAdd <- entry:
	}
}

// ShutDown is [Queue.ShutDown] for the waiting loop too: keys that still wait are dropped.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: (*delayingType).ShutDown
func (q *DelayingQueue) ShutDown() {
	q.Queue.ShutDown()
	q.stopOnce.Do(func() { close(q.stop) })
}

// Run is the waiting loop. It returns when ctx is done or the queue is shut down, and must be called once.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: (*delayingType).waitingLoop
func (q *DelayingQueue) Run(ctx context.Context) {
	heartbeat := q.clock.NewTicker(maxWait)
	defer heartbeat.Stop()
	defer q.stopTimer()
	for q.wait(ctx, heartbeat.C()) {
		q.addReady()
		q.resetTimer()
	}
}

// wait blocks until something may have become ready, and takes in what AddAfter sent. It
// returns false at the end.
func (q *DelayingQueue) wait(ctx context.Context, heartbeat <-chan time.Time) bool {
	// A receive from a nil channel blocks forever: with nothing waiting, that case is switched
	// off.
	var nextReadyAt <-chan time.Time
	if q.timer != nil {
		nextReadyAt = q.timer.C()
	}
	// Five cases, one more than we allow ourselves elsewhere: stop cannot be ctx, because
	// ShutDown may come while the ctx of Run goes on.
	select {
	case <-ctx.Done():
		return false
	case <-q.stop:
		return false
	case entry := <-q.waitingForAdd:
		q.takeIn(entry)
	case <-nextReadyAt:
	case <-heartbeat:
	}
	return true
}

// takeIn inserts entry and everything else AddAfter has sent so far, so that a burst costs one new timer, not one each.
func (q *DelayingQueue) takeIn(entry waitFor) {
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
func (q *DelayingQueue) insert(entry waitFor) {
	waiting, ok := q.known[entry.key]
	if !ok {
		q.known[entry.key] = &entry
		heap.Push(&q.waiting, &entry)
		q.nWaiting.Store(int64(len(q.waiting)))
		return
	}
	if entry.readyAt.Before(waiting.readyAt) {
		waiting.readyAt = entry.readyAt
		heap.Fix(&q.waiting, waiting.index)
	}
}

// addReady moves every key whose time has come to the queue, earliest first.
func (q *DelayingQueue) addReady() {
	now := q.clock.Now()
	for len(q.waiting) > 0 && !q.waiting[0].readyAt.After(now) {
		entry := heap.Pop(&q.waiting).(*waitFor)
		delete(q.known, entry.key)
		q.nWaiting.Store(int64(len(q.waiting)))
		q.Add(entry.key)
	}
}

// resetTimer makes the timer run out when the head of waiting is ready.
func (q *DelayingQueue) resetTimer() {
	q.stopTimer()
	if len(q.waiting) > 0 {
		q.timer = q.clock.NewTimer(q.waiting[0].readyAt.Sub(q.clock.Now()))
	}
}

func (q *DelayingQueue) stopTimer() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
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
	index   int // in the heap, kept by Swap, for heap.Fix
}

// waitForPriorityQueue is a heap, for container/heap: the entry that is ready first is at index 0.
//
// Upstream: k8s.io/client-go/util/workqueue/delaying_queue.go: waitForPriorityQueue
type waitForPriorityQueue []*waitFor

func (pq waitForPriorityQueue) Len() int           { return len(pq) }
func (pq waitForPriorityQueue) Less(i, j int) bool { return pq[i].readyAt.Before(pq[j].readyAt) }

func (pq waitForPriorityQueue) Swap(i, j int) {
	pq[i], pq[j] = pq[j], pq[i]
	pq[i].index = i
	pq[j].index = j
}

// Push takes a *waitFor; it is called by heap.Push only.
func (pq *waitForPriorityQueue) Push(x any) {
	entry := x.(*waitFor)
	entry.index = len(*pq)
	*pq = append(*pq, entry)
}

// Pop is called by heap.Pop only.
func (pq *waitForPriorityQueue) Pop() any {
	last := len(*pq) - 1
	entry := (*pq)[last]
	(*pq)[last] = nil
	*pq = (*pq)[:last]
	return entry
}

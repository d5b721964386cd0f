package etcd3

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// processEventConcurrency is how many events of one watch at most are being decoded, or decoded and waiting for their
// turn, at any time. The collector holds one of them, the others wait in processingQueue.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: processEventConcurrency
const processEventConcurrency = 10

// Events are decoded at the same time and leave in the order in which they came. The trick is that one goroutine queues
// the answers' channels in that order, before the answers exist: the collector waits for the first channel in the
// queue, whichever is ready first.

// processingResult is what became of one event: a result, nothing because the predicate rejects it, or an error.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: processingResult
type processingResult struct {
	result *watch.Event
	key    string
	rev    int64
	err    error
}

// job is one event to be decoded.
type job struct {
	event    *event
	response chan<- *processingResult
}

// scheduleEventProcessing gives each event its place in processingQueue, and then the event
// itself to a goroutine that decodes it.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*concurrentOrderedEventProcessing).scheduleEventProcessing
// Differs: ten goroutines decode one event after the other; upstream starts one for each event.
// Decoding goes deep: a new goroutine spends a third of its time on a stack that grows, and one
// that is used again does not (docs/COSTS.md).
func (wc *watchChan) scheduleEventProcessing(ctx context.Context) {
	for {
		var e *event
		select {
		case <-ctx.Done():
			return
		case e = <-wc.incomingEventChan:
		}
		wc.received(e)
		// Sent once by the goroutine that decodes, never closed; 1: it never waits.
		response := make(chan *processingResult, 1)
		// The place first, then the work: a full queue is what keeps the number of events
		// under way down.
		select {
		case <-ctx.Done():
			return
		case wc.processingQueue <- response:
		}
		select {
		case <-ctx.Done():
			return
		case wc.jobs <- job{e, response}:
		}
	}
}

// processEvents decodes events until ctx is done, whatever their places in the queue.
func (wc *watchChan) processEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-wc.jobs:
			result, err := wc.transform(j.event)
			j.response <- &processingResult{result: result, key: j.event.key, rev: j.event.rev, err: err}
		}
	}
}

// collectEventProcessing sends results in the order of processingQueue. The first error ends
// the watch; what was decoded after it is dropped. It is the only sender of resultChan.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*concurrentOrderedEventProcessing).collectEventProcessing
func (wc *watchChan) collectEventProcessing(ctx context.Context) {
	for {
		var response chan *processingResult
		select {
		case <-ctx.Done():
			return
		case response = <-wc.processingQueue:
		}
		var r *processingResult
		select {
		case <-ctx.Done(): // its goroutine may never have begun
			return
		case r = <-response:
		}
		if r.err != nil {
			wc.sendError(ctx, r.err)
			return
		}
		if r.result != nil && !wc.send(ctx, r.result, r.key, r.rev) {
			return
		}
	}
}

package etcd3

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// processEventConcurrency is the largest number of events of one watch that are being decoded, or wait decoded for
// their turn. The collector holds one of them, the others wait in processingQueue.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: processEventConcurrency
const processEventConcurrency = 10

// Events are decoded at the same time and leave in the order in which they came: one goroutine queues the answers'
// channels in that order, before the answers exist, and the collector waits for the first, even if another is ready.

// processingResult is the outcome of one event: a result, nothing if the predicate rejects the object, or an error.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: processingResult
type processingResult struct {
	result *watch.Event
	key    string
	rev    int64
	err    error
}

// scheduleEventProcessing gives each event its place in processingQueue, and then starts a
// goroutine that decodes it.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*concurrentOrderedEventProcessing).scheduleEventProcessing
func (wc *watchChan) scheduleEventProcessing(ctx context.Context) {
	for {
		var e *event
		select {
		case <-ctx.Done():
			return
		case e = <-wc.incomingEventChan:
		}
		wc.received(e)
		// Sent once, by the goroutine that decodes, never closed. 1: it never waits.
		response := make(chan *processingResult, 1)
		// The place first, then the work: a full queue limits the number of events that are
		// being decoded.
		select {
		case <-ctx.Done():
			return
		case wc.processingQueue <- response:
		}
		wc.group.Go(ctx, "watchChan.processEvent",
			func(context.Context) { response <- wc.processEvent(e) })
	}
}

// processEvent decodes one event.
func (wc *watchChan) processEvent(e *event) *processingResult {
	result, err := wc.transform(e)
	return &processingResult{result: result, key: e.key, rev: e.rev, err: err}
}

// collectEventProcessing sends results in the order of processingQueue. The first error ends
// the watch; events decoded after it are dropped. This goroutine is the only sender of
// resultChan.
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
		r := <-response // each event with a place in the queue is decoded
		if r.err != nil {
			wc.sendError(ctx, r.err)
			return
		}
		if r.result != nil && !wc.send(ctx, r.result, r.key, r.rev) {
			return
		}
	}
}

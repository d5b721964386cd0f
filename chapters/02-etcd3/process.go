package etcd3

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// processEventConcurrency is how many events of one watch are being decoded, or decoded and waiting for their turn, at
// any time. One of them is in the hands of the collector, the others stand in processingQueue.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: processEventConcurrency
const processEventConcurrency = 10

// Events are decoded at the same time and leave in the order in which they came. The trick is that one goroutine queues
// the answers' channels in that order, before the answers exist: the collector waits for the first channel in the queue,
// whichever decoder is the quickest.

// processingResult is what became of one event: a result, nothing because nobody wants it, or an error.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: processingResult
type processingResult struct {
	result *watch.Event
	key    string
	rev    int64
	err    error
}

// processing is an event that is to be decoded, and where its answer is waited for.
type processing struct {
	e        *event
	response chan<- *processingResult
}

// scheduleEventProcessing gives each event its place in processingQueue and then a decoder.
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
		response := make(chan *processingResult, 1) // sent once by the decoder, never closed; 1: the decoder never waits
		// The place first, then the decoder: a full queue is what keeps the number of events under way down.
		select {
		case <-ctx.Done():
			return
		case wc.processingQueue <- response:
		}
		wc.decode(ctx, processing{e: e, response: response})
	}
}

// decode hands p to a decoder that is idle. If there is none, and there may be one more, that is started first: a quiet
// watch has one decoder, a busy one has ten.
func (wc *watchChan) decode(ctx context.Context, p processing) {
	select {
	case wc.decoding <- p:
		return
	default:
	}
	if wc.decoders < processEventConcurrency {
		wc.decoders++
		wc.group.Go(ctx, "watchChan.processEvent", wc.processEvents)
	}
	select {
	case <-ctx.Done():
	case wc.decoding <- p:
	}
}

// processEvents is a decoder: it decodes one event after the other.
//
// Differs: upstream starts a goroutine per event. Decoding goes deep, and each of them spent most of its time on letting
// its stack grow.
func (wc *watchChan) processEvents(ctx context.Context) {
	for {
		var p processing
		select {
		case <-ctx.Done():
			return
		case p = <-wc.decoding:
		}
		result, err := wc.transform(p.e)
		p.response <- &processingResult{result: result, key: p.e.key, rev: p.e.rev, err: err}
	}
}

// collectEventProcessing sends results in the order of processingQueue. The first error ends the watch; what was
// decoded after it is dropped. It is the only sender of resultChan.
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
		case <-ctx.Done(): // its decoder may have ended without having begun
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

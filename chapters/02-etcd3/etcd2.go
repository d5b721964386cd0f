package etcd3

import (
	"context"
)

// etcdWatcher is a reconstruction: a watch in the manner of the watcher that Kubernetes had for
// etcd 2 until 1.12, with the names of that watcher
// (k8s.io/apiserver/pkg/storage/etcd/etcd_watcher.go: etcdIncoming, translate, outgoing), over
// an etcd 3 watch. It never existed in this form. One goroutine asks etcd, one translates, and
// nothing is decoded ahead of its turn.
//
//	etcd ─► etcdWatch ─► etcdIncoming (100) ─► translate ─► outgoing (100) ─► reader
//	            └──────► etcdError (1) ───────────┘
//
// It looks like a simpler [watchChan], and differs from it in two ways that mattered in the
// original: a value that does not decode is skipped, so that a watcher gets past that value,
// but does not know what it missed; and an error can overtake events, because it comes by a
// channel of its own.
//
// Differs: the original asked etcd 2 in a chain of HTTP long polls, each for the index after
// the last answer. Its Stop closed a userStop channel; here a context is cancelled. Its
// sendAdd, sendModify and sendDelete are one function here, over [stream.transform]. The
// original had no bookmarks, without which today's cacher does not work.
type etcdWatcher struct {
	*stream // its incomingEventChan is etcdIncoming, its resultChan outgoing

	// Sent by etcdWatch, at most once; never closed; 1: etcdWatch does not wait to get rid of
	// it.
	etcdError chan error
}

func startEtcdWatcher(ctx context.Context, s *stream) *etcdWatcher {
	w := &etcdWatcher{stream: s, etcdError: make(chan error, 1)}
	w.owner.Go(ctx, "etcdWatcher.run", w.run)
	return w
}

// run starts the two goroutines and waits for the end.
func (w *etcdWatcher) run(ctx context.Context) {
	w.group.Go(ctx, "etcdWatcher.etcdWatch", w.etcdWatch)
	w.group.Go(ctx, "etcdWatcher.translate", w.translate)
	w.reap(ctx)
}

// etcdWatch makes all calls to etcd: it reads the current state if wanted, then the changes. It always ends by sending
// an error, nil for "no more", because translate waits for one.
func (w *etcdWatcher) etcdWatch(ctx context.Context) {
	w.etcdError <- w.watchFromStart(ctx)
}

// translate turns events into results until an error comes or ctx is done. It is the only
// sender of outgoing.
func (w *etcdWatcher) translate(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-w.etcdError:
			w.sendError(ctx, err)
			return
		case e := <-w.incomingEventChan:
			w.received(e)
			w.sendResult(ctx, e)
		}
	}
}

// sendResult sends the result of an event. A value that does not decode is ignored: sendResult
// skips the event. If only the state before a put does not decode, the object counts as
// created.
func (w *etcdWatcher) sendResult(ctx context.Context, e *event) {
	seen := *e
	if _, err := w.decodeObj(e.key, e.prevValue, e.rev); err != nil && !e.isDeleted {
		seen.prevValue, seen.isCreated = nil, true
	}
	result, err := w.transform(&seen)
	if err != nil || result == nil {
		return
	}
	w.send(ctx, result, e.key, e.rev)
}

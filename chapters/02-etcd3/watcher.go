package etcd3

import (
	"context"
	"math/rand/v2"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	storage "listwatch/chapters/01-storage"
)

// watchChan is one watch on etcd, as a line of goroutines:
//
//	etcd ─► startWatching ─► incomingEventChan ─► scheduleEventProcessing ─► up to ten processEvent: transform
//	                              (100)                     │ processingQueue (9): whose turn it is │
//	                                                        ▼                                       ▼
//	        reader ◄───────── resultChan (100) ◄─── collectEventProcessing ◄────────────────────────┘
//
// The goroutine run waits for the end and closes resultChan.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: watchChan
// Differs: the context is handed down, not kept. No loggers for slow stages: the probes show them.
type watchChan struct {
	*stream

	// sent by scheduleEventProcessing, never closed; see processEventConcurrency
	processingQueue chan chan *processingResult
}

func startWatchChan(ctx context.Context, s *stream) *watchChan {
	wc := &watchChan{
		stream:          s,
		processingQueue: make(chan chan *processingResult, processEventConcurrency-1),
	}
	wc.owner.Go(ctx, "watchChan.run", wc.run)
	return wc
}

// run starts the line and ends it when ctx is done, which is also how an error ends the watch.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*watchChan).run
func (wc *watchChan) run(ctx context.Context) {
	wc.group.Go(ctx, "watchChan.startWatching", wc.startWatching)
	wc.group.Go(ctx, "watchChan.scheduleEventProcessing", wc.scheduleEventProcessing)
	wc.group.Go(ctx, "watchChan.collectEventProcessing", wc.collectEventProcessing)
	wc.reap(ctx)
}

// startWatching reads from etcd: the current state if wanted, then every change after it. It owns initialRev.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*watchChan).startWatching
// Differs: an error goes down the line behind the events that came before it; upstream puts it into resultChan at once.
func (wc *watchChan) startWatching(ctx context.Context) {
	if err := wc.watchFromStart(ctx); err != nil {
		wc.queueEvent(ctx, &event{err: err})
		return
	}
	wc.cancel() // etcd has closed the watch
}

// watchFromStart queues everything in its order until ctx is done or etcd ends the watch.
func (s *stream) watchFromStart(ctx context.Context) error {
	if s.initialEvents {
		if err := s.sync(ctx); err != nil {
			return err
		}
	}
	if s.opts.IsInitialEventsEndBookmarkRequired() {
		// In the same line as the state, so it cannot arrive before the state is complete.
		end := progressNotifyEvent(s.initialRev)
		end.isInitialEventsEndBookmark = true
		s.queueEvent(ctx, end)
	}
	return s.watchChanges(ctx)
}

// sync queues the current state, in key order, as if each object had just been created, and
// sets initialRev to the revision at which all of it was read. If that is older than the former
// initialRev, the error is 504. It reads pages: a large state is never in memory as a whole.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*watchChan).syncPaginated
// Differs: upstream streams the state from etcd 3.7 on.
func (s *stream) sync(ctx context.Context) error {
	page := kubernetes.ListOptions{Limit: maxLimit}
	for {
		response, err := s.store.readRange(ctx, s.key, s.opts.Recursive, page)
		if err != nil {
			// This includes compaction between two pages: unlike a list, a watch has no
			// continue token.
			return interpretListError(err, "", s.key)
		}
		if response.Revision < s.initialRev {
			retrySeconds := 1 + rand.IntN(3) // so that not all clients come back at once
			want, current := uint64(s.initialRev), uint64(response.Revision)
			return storage.NewTooLargeResourceVersionError(want, current, retrySeconds)
		}
		for _, kv := range response.Kvs {
			if !s.queueEvent(ctx, parseKV(kv)) {
				return ctx.Err()
			}
		}
		if page.Revision == 0 {
			page.Revision, s.initialRev = response.Revision, response.Revision
		}
		if n := len(response.Kvs); n == 0 || int64(n) == response.Count {
			return nil
		}
		page.Continue = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
}

// watchChanges queues what etcd reports after initialRev. It returns nil when the channel was closed without an error:
// ctx is done, or the client was closed.
func (s *stream) watchChanges(ctx context.Context) error {
	opts := []clientv3.OpOption{clientv3.WithRev(s.initialRev + 1), clientv3.WithPrevKV()}
	if s.opts.Recursive {
		opts = append(opts, clientv3.WithPrefix())
	}
	if s.opts.ProgressNotify {
		opts = append(opts, clientv3.WithProgressNotify())
	}
	for response := range s.store.client.Watch(ctx, s.key, opts...) {
		if err := s.queueResponse(ctx, &response); err != nil {
			return err
		}
	}
	return nil
}

// queueResponse queues one answer of etcd: an error, progress, or some changes.
func (s *stream) queueResponse(ctx context.Context, response *clientv3.WatchResponse) error {
	if err := response.Err(); err != nil {
		return err
	}
	if response.IsProgressNotify() {
		s.queueEvent(ctx, progressNotifyEvent(response.Header.GetRevision()))
		return nil
	}
	for _, e := range response.Events {
		parsed, err := parseEvent(e)
		if err != nil {
			return err
		}
		s.queueEvent(ctx, parsed)
	}
	return nil
}

package mvcc

import (
	"cmp"
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"listwatch/internal/observe/routine"
)

// progressInterval is the time between progress notifications to an idle watch: etcd's default.
const progressInterval = 10 * time.Minute

// watcher is one watch. Its pending responses are unlimited, as in etcd's client, so a receiver that does not read
// slows nothing down.
type watcher struct {
	// Set by Watch and register, never changed.
	store     *Store
	key, end  string // the range [key, end)
	from      int64  // the first revision to deliver
	stream    string // the key of its stream; RequestProgress serves all watches of a stream together
	prevKV    bool
	responses chan clientv3.WatchResponse // sent and closed by run; unbuffered: responses wait in pending
	// Sent by the goroutine that adds to pending, never closed; capacity 1 suffices, because run takes all responses.
	wake     chan struct{}
	progress bool
	group    routine.Group

	// Guarded by store.mu.
	pending []clientv3.WatchResponse
	done    bool // the watch was cancelled: no response will be added
}

// Watch returns the changes to a key or a range of keys, from a revision on; 0: the next one. The channel is closed
// when ctx is done, and after an error: ErrCompacted if the revision is gone, or the error of [Store.FailWatches].
func (s *Store) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	w := &watcher{
		store: s, key: key, end: cmp.Or(string(op.RangeBytes()), key+"\x00"), from: op.Rev(),
		prevKV: op.IsPrevKV(), progress: op.IsProgressNotify(), stream: streamOf(ctx),
		responses: make(chan clientv3.WatchResponse),
		wake:      make(chan struct{}, 1),
	}
	s.register(w)
	w.group.Go(ctx, "mvcc.watch", w.run)
	return w.responses
}

// register chooses the watch's first revision, and adds the watch with the events since then, in one step.
// It cancels the watch if that revision is compacted.
func (s *Store) register(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.from <= 0 {
		w.from = s.revision + 1
	}
	if w.from < s.compacted {
		w.cancelLocked(clientv3.WatchResponse{CompactRevision: s.compacted, Canceled: true})
		return
	}
	s.watches[w] = struct{}{}
	if w.from <= s.revision {
		w.offerLocked(s.sinceLocked(w.from)...)
	}
}

// RequestProgress sends the newest revision to every watch of ctx's stream, after its pending events. As in etcd, it
// sends nothing while one of the watches begins at a later revision. The error is ctx's.
func (s *Store) RequestProgress(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.expireLocked(ctx, clientv3.NoLease); err != nil {
		return err
	}
	var together []*watcher
	for w := range s.watches {
		if w.stream != streamOf(ctx) {
			continue
		}
		if w.from > s.revision {
			return nil
		}
		together = append(together, w)
	}
	for _, w := range together {
		w.pendLocked(clientv3.WatchResponse{})
	}
	return nil
}

// streamOf returns the key of a request's stream. Like etcd's client, it uses the request's metadata.
func streamOf(ctx context.Context) string {
	sent, _ := metadata.FromOutgoingContext(ctx)
	return fmt.Sprint(map[string][]string(sent))
}

// FailWatches ends every watch with an error of this text, like an etcd that loses its leader. If the text is one of
// etcd's errors, such as rpctypes.ErrGRPCNoLeader, the watches end with that error.
func (s *Store) FailWatches(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.cancelLocked(clientv3.WatchResponse{Canceled: true, CancelReason: reason})
	}
}

// run delivers pending responses and progress notifications until ctx is done or the watch is cancelled. It then
// removes the watch from the store, and closes the channel.
func (w *watcher) run(ctx context.Context) {
	defer close(w.responses)
	defer w.unregister()
	var tick <-chan time.Time // nil, which is never ready: no progress notifications
	if w.progress {
		ticker := w.store.clock.NewTicker(progressInterval)
		defer ticker.Stop()
		tick = ticker.C()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-tick:
			w.pendProgress()
		}
		responses, done := w.take()
		for _, response := range responses {
			select {
			case <-ctx.Done():
				return
			case w.responses <- response:
			}
		}
		if done {
			return
		}
	}
}

func (w *watcher) pendProgress() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if len(w.pending) == 0 {
		w.pendLocked(clientv3.WatchResponse{})
	}
}

func (w *watcher) unregister() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	delete(w.store.watches, w)
}

// take empties pending. done means that no response will follow.
func (w *watcher) take() (responses []clientv3.WatchResponse, done bool) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	responses, w.pending = w.pending, nil
	return responses, w.done
}

// offerLocked adds a response with the events that the watch wants, if any. It omits the previous state unless
// the watch requested it and, as in etcd, it is not compacted.
func (w *watcher) offerLocked(made ...revision) {
	var events []*clientv3.Event
	for _, each := range made {
		if !w.wants(each.event.GetKv()) {
			continue
		}
		event := proto.CloneOf(each.event)
		if !w.prevKV || event.Kv.ModRevision <= w.store.compacted {
			event.PrevKv = nil
		}
		events = append(events, event)
	}
	if len(events) > 0 {
		w.pendLocked(clientv3.WatchResponse{Events: events})
	}
}

// wants reports whether written is in the watch's range and not before its first revision. written may be nil: false.
func (w *watcher) wants(written *mvccpb.KeyValue) bool {
	key := string(written.GetKey())
	if written == nil || written.ModRevision < w.from {
		return false
	}
	return key >= w.key && (key < w.end || w.end == "\x00") // "\x00": the range has no upper end, as in etcd
}

// pendLocked adds a response, with the newest revision, and wakes run, unless the watch is cancelled.
func (w *watcher) pendLocked(response clientv3.WatchResponse) {
	if w.done {
		return
	}
	response.Header = &pb.ResponseHeader{Revision: w.store.revision}
	w.pending = append(w.pending, response)
	select {
	case w.wake <- struct{}{}:
	default: // run has not received the last wake yet
	}
}

// cancelLocked adds the watch's last response, and removes the watch from the store.
func (w *watcher) cancelLocked(response clientv3.WatchResponse) {
	w.pendLocked(response)
	w.done = true
	delete(w.store.watches, w)
}

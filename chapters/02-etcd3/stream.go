package etcd3

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// Sizes of the two channels of a watch: with them neither side is woken for each single event. A full channel stops its
// sender, and so, in the end, the reading from etcd: a slow reader costs no memory here.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: incomingBufSize
const (
	incomingBufSize = 100
	outgoingBufSize = 100
)

// stream is the common part of both implementations of a watch: the request, two channels, and the end.
type stream struct {
	// Set by newStream, never changed.
	key           string
	opts          storage.ListOptions
	initialEvents bool // begin with the current state

	store  *Store
	probe  *probe.Probe
	id     string             // "etcd3-1"
	text   string             // a description of the request
	cancel context.CancelFunc // ends every goroutine of the watch; may be called by any of them, and more than once

	// sent by the one goroutine that talks to etcd, never closed; see incomingBufSize
	incomingEventChan chan *event
	// sent by the last goroutine in line, closed by reap when that one has ended; see outgoingBufSize
	resultChan chan watch.Event

	owner routine.Group // the goroutine that reaps
	group routine.Group // every other goroutine of the watch

	initialRev int64 // the watch delivers newer changes; owned by the goroutine that talks to etcd
}

func (s *stream) ResultChan() <-chan watch.Event { return s.resultChan }

// Stop implements watch.Interface. The channel is closed soon after.
func (s *stream) Stop() { s.cancel() }

// startWatch starts the configured implementation.
func (s *Store) startWatch(
	ctx context.Context, key string, rev int64, opts storage.ListOptions,
) (watch.Interface, error) {
	rev, err := s.getStartWatchResourceVersion(ctx, rev, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := s.newStream(key, rev, opts, cancel)
	s.register(w)
	w.probe.Text(probe.WatchChanOpened, w.text, key, uint64(rev))
	if s.watcher == WatcherEtcd2 {
		return startEtcdWatcher(ctx, w), nil
	}
	return startWatchChan(ctx, w), nil
}

func (s *Store) newStream(key string, rev int64, opts storage.ListOptions, cancel context.CancelFunc) *stream {
	id := fmt.Sprintf("etcd3-%d", s.nWatches.Add(1))
	w := &stream{
		key: key, opts: opts, initialEvents: opts.AreInitialEventsRequired(uint64(rev)), initialRev: rev,
		store: s, probe: s.probe.Subject(id), id: id, text: fmt.Sprintf("%s after %d", key, rev), cancel: cancel,
		incomingEventChan: make(chan *event, incomingBufSize),
		resultChan:        make(chan watch.Event, outgoingBufSize),
	}
	if w.initialEvents {
		w.text = key + " from its current state"
	}
	return w
}

// getStartWatchResourceVersion returns the revision after which the watch begins: the requested one; the newest, if the
// watch wants only changes from now on; 0 if the current state comes first and decides it.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*watcher).getStartWatchResourceVersion
func (s *Store) getStartWatchResourceVersion(ctx context.Context, rev int64, opts storage.ListOptions) (int64, error) {
	if rev > 0 || opts.AreInitialEventsRequired(uint64(rev)) {
		return rev, nil
	}
	current, err := s.GetCurrentResourceVersion(ctx)
	return int64(current), err
}

// queueEvent puts an event in line for decoding. It returns false if the watch has ended.
func (s *stream) queueEvent(ctx context.Context, e *event) bool {
	select {
	case s.incomingEventChan <- e:
	default:
		s.probe.At(probe.Etcd3IncomingBlocked, e.key, uint64(e.rev))
		select { // until there is room, nothing is read from etcd's stream
		case <-ctx.Done():
			return false
		case s.incomingEventChan <- e:
		}
	}
	s.probe.At(probe.Etcd3IncomingSent, e.key, uint64(e.rev), len(s.incomingEventChan), cap(s.incomingEventChan))
	return true
}

// received reports that an event has left incomingEventChan.
func (s *stream) received(e *event) {
	s.probe.At(probe.Etcd3IncomingReceived, e.key, uint64(e.rev), len(s.incomingEventChan), cap(s.incomingEventChan))
}

// send puts an event into resultChan; key and rev are those of the change behind it. It returns false if the watch has
// ended.
func (s *stream) send(ctx context.Context, result *watch.Event, key string, rev int64) bool {
	select {
	case s.resultChan <- *result:
	default:
		s.probe.Event(probe.Etcd3ResultBlocked, string(result.Type), key, uint64(rev))
		select { // until the reader has made room
		case <-ctx.Done():
			return false
		case s.resultChan <- *result:
		}
	}
	s.probe.Event(probe.Etcd3ResultSent, string(result.Type), key, uint64(rev), len(s.resultChan), cap(s.resultChan))
	return true
}

// sendError ends the watch, after one ERROR event if there is an error other than the end of the context.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*watchChan).sendError
func (s *stream) sendError(ctx context.Context, err error) {
	defer s.cancel()
	if err == nil || isCancelError(err) {
		return
	}
	reason := string(interpretWatchError(err).Status().Reason)
	s.probe.Texts(probe.WatchChanError, []string{err.Error(), reason}, s.key, 0)
	s.send(ctx, transformErrorToEvent(err), "", 0)
}

// transformErrorToEvent returns the ERROR event for an error; its object is a Status.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: transformErrorToEvent
func transformErrorToEvent(err error) *watch.Event {
	status := interpretWatchError(err).Status()
	return &watch.Event{Type: watch.Error, Object: &status}
}

// reap waits for the end of ctx and ends the watch for good. The order matters: a channel may be closed only when no
// goroutine can send to it any more.
func (s *stream) reap(ctx context.Context) {
	<-ctx.Done()
	s.group.Wait()
	close(s.resultChan)
	s.store.unregister(s)
	s.probe.At(probe.WatchChanClosed, s.key, 0)
}

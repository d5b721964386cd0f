package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/probe"
)

// WatchServer drains one watch into one response. It is used once, by one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: WatchServer
// Differs: it always runs in the goroutine of the request.
type WatchServer struct {
	// Set by newWatchServer, never changed.
	scope     *scope
	watching  watch.Interface
	timeout   time.Duration
	watchList bool // the client waits for the bookmark that ends the initial events
	media     mediaType
	probe     *probe.Probe // of the watcher
	where     string       // what the watch is about, for the metrics

	// Owned by the goroutine of the request.
	encoder *watchEncoder
	started time.Time
	awaited bool // the end of the initial events has yet to come
}

// newWatchServer settles how events are written. Errors: 400, 406.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: serveWatchHandler
func (s *scope) newWatchServer(r *http.Request, watching watch.Interface, timeout time.Duration, output mediaType, watchList bool) (*WatchServer, error) {
	media, err := negotiateStream(output)
	if err != nil {
		return nil, err
	}
	options, err := optionsForTransform(r, media)
	if err != nil {
		return nil, err
	}
	return &WatchServer{
		scope:     s,
		watching:  watching,
		timeout:   timeout,
		watchList: watchList,
		awaited:   watchList,
		media:     media,
		probe:     probe.Of(watching),
		where:     scopeOf(s, r, "watch"),
		encoder:   newWatchEncoder(r.Context(), s, media, options),
		started:   s.server.clock.Now(),
	}, nil
}

// handle serves the watch in the way the client asked for. Its error is one that came before the first byte.
func (s *WatchServer) handle(w http.ResponseWriter, r *http.Request) error {
	if websocket.IsWebSocketUpgrade(r) {
		s.HandleWS(w, r)
		return nil
	}
	return s.HandleHTTP(w, r)
}

// stream is where a [WatchServer] writes to. Each frame is one Write.
type stream interface {
	io.Writer
	// flush sends what was written on its way.
	flush() error
	// close ends the stream. The reason is for whoever can be told.
	close(reason string)
}

// HandleHTTP streams events until the watch ends, the time is over, the client goes away, or the server shuts down. An
// error is one that came before the first byte; after that there is no way to tell the client of any.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: (*WatchServer).HandleHTTP
func (s *WatchServer) HandleHTTP(w http.ResponseWriter, r *http.Request) error {
	flusher, ok := flusherOf(w)
	if !ok {
		return errors.New("unable to start watch - can't get http.Flusher: " + r.Proto)
	}
	writer := newWatchWriter(w, flusher, s.watchList && acceptsGzip(r))
	writer.beginStream(s.media.name)
	s.run(r.Context(), r, writer)
	return nil
}

// run serves an open stream to its end. ctx ends when the client is gone.
func (s *WatchServer) run(ctx context.Context, r *http.Request, to stream) {
	timer := s.scope.server.clock.NewTimer(s.timeout)
	defer timer.Stop()
	s.probe.Text(probe.WireOpened, r.UserAgent()+" "+r.URL.RequestURI(), "", 0)
	reason := s.serve(ctx, to, timer.C())
	to.close(reason)
	s.probe.Text(probe.WireClosed, reason, "", 0)
}

// serve is the loop. It returns why it ended.
func (s *WatchServer) serve(ctx context.Context, to stream, timeout <-chan time.Time) string {
	events := s.watching.ResultChan()
	for {
		select {
		case <-ctx.Done():
			return "the client is gone"
		case <-s.scope.server.shutdown:
			return "the server shuts down"
		case <-timeout:
			return "timeoutSeconds is over"
		case event, ok := <-events:
			if !ok {
				return "the watch has ended"
			}
			if err := s.send(to, event, events); err != nil {
				return err.Error()
			}
		}
	}
}

// send writes one event, and flushes unless more are waiting: while there is a backlog the client gets it in as few
// packets as possible, and once there is none it gets every event at once.
func (s *WatchServer) send(to stream, event watch.Event, events <-chan watch.Event) error {
	key, rv := s.identify(event.Object)
	s.probe.Event(probe.ResultReceived, string(event.Type), key, rv, len(events), cap(events))
	n, err := s.encoder.Encode(event, to)
	if err != nil {
		return err
	}
	s.probe.Event(probe.FrameWritten, string(event.Type), key, rv, n, len(events))
	s.scope.server.metrics.watchEvent(s.scope, n)
	if s.awaited && event.Type == watch.Bookmark {
		s.observeWatchList(event.Object)
	}
	if len(events) > 0 {
		return nil
	}
	if err := to.flush(); err != nil {
		return err
	}
	s.probe.At(probe.WireFlushed, key, rv)
	return nil
}

// observeWatchList measures, once, how long the initial state took.
func (s *WatchServer) observeWatchList(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil || !endsInitialEvents(accessor) {
		return
	}
	s.awaited = false
	s.scope.server.metrics.watchListDone(s.scope, s.where, s.scope.server.clock.Since(s.started))
}

// identify returns the storage key and the resource version of an event's object, for the probes; nothing if they are
// off, or if the object has none.
func (s *WatchServer) identify(obj runtime.Object) (key string, rv uint64) {
	if s.probe == nil {
		return "", 0
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", 0
	}
	rv, _ = strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if accessor.GetName() != "" {
		key, _ = s.scope.resource.Key(accessor.GetNamespace(), accessor.GetName())
	}
	return key, rv
}

// flusherOf returns the Flusher of w, or of what w wraps.
func flusherOf(w http.ResponseWriter) (http.Flusher, bool) {
	for {
		if flusher, ok := w.(http.Flusher); ok {
			return flusher, true
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil, false
		}
		w = wrapper.Unwrap()
	}
}

package handlers

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/probe"
)

// WatchServer drains one watch into one response. It is used once, by one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: WatchServer
// Differs: no gzip; it always runs in the goroutine of the request.
type WatchServer struct {
	// Set by newWatchServer, never changed.
	scope     *scope
	watching  watch.Interface
	timeout   time.Duration
	watchList bool // the client waits for the bookmark that ends the initial events
	media     mediaType
	probe     *probe.Probe // of the watcher
	where     string       // what the watch is about, for the metrics

	// Owned by HandleHTTP.
	encoder *watchEncoder
	started time.Time
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
		media:     media,
		probe:     probe.Of(watching),
		where:     scopeOf(s, r, "watch"),
		encoder:   newWatchEncoder(r.Context(), s, media, options),
		started:   s.server.clock.Now(),
	}, nil
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
	timer := s.scope.server.clock.NewTimer(s.timeout)
	defer timer.Stop()
	s.beginStream(w, flusher)
	s.probe.Text(probe.WireOpened, r.UserAgent()+" "+r.URL.RequestURI(), "", 0)
	reason := s.serve(w, r, flusher, timer.C())
	s.probe.Text(probe.WireClosed, reason, "", 0)
	return nil
}

// beginStream sends the headers at once: the client learns that it is watching before anything happens.
func (s *WatchServer) beginStream(w http.ResponseWriter, flusher http.Flusher) {
	w.Header().Set("Content-Type", s.media.name)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	flusher.Flush()
}

// serve is the loop. It returns why it ended.
func (s *WatchServer) serve(w http.ResponseWriter, r *http.Request, flusher http.Flusher, timeout <-chan time.Time) string {
	events := s.watching.ResultChan()
	for {
		select {
		case <-r.Context().Done():
			return "the client is gone"
		case <-s.scope.server.shutdown:
			return "the server shuts down"
		case <-timeout:
			return "timeoutSeconds is over"
		case event, ok := <-events:
			if !ok {
				return "the watch has ended"
			}
			if err := s.handle(w, flusher, event, events); err != nil {
				return err.Error()
			}
		}
	}
}

// handle writes one event, and flushes unless more are waiting: while there is a backlog the client gets it in as few
// packets as possible, and once there is none it gets every event at once.
func (s *WatchServer) handle(w http.ResponseWriter, flusher http.Flusher, event watch.Event, events <-chan watch.Event) error {
	key, rv := s.identify(event.Object)
	s.probe.Event(probe.ResultReceived, string(event.Type), key, rv, len(events), cap(events))
	n, err := s.encoder.Encode(event, w)
	if err != nil {
		return err
	}
	s.probe.Event(probe.FrameWritten, string(event.Type), key, rv, n, len(events))
	s.scope.server.metrics.watchEvent(s.scope, n)
	if len(events) == 0 {
		flusher.Flush()
	}
	if s.watchList && event.Type == watch.Bookmark {
		s.observeWatchList(event.Object)
	}
	return nil
}

// observeWatchList measures, once, how long the initial state took.
func (s *WatchServer) observeWatchList(obj runtime.Object) {
	accessor, err := meta.Accessor(uncached(obj))
	if err != nil || !endsInitialEvents(accessor) {
		return
	}
	s.watchList = false
	s.scope.server.metrics.watchListDone(s.scope, s.where, s.scope.server.clock.Since(s.started))
}

// identify returns the storage key and the resource version of an event's object, for the probes; nothing if they are
// off, or if the object has none.
func (s *WatchServer) identify(obj runtime.Object) (key string, rv uint64) {
	if s.probe == nil {
		return "", 0
	}
	accessor, err := meta.Accessor(uncached(obj))
	if err != nil {
		return "", 0
	}
	rv, _ = strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if accessor.GetName() != "" {
		key, _ = s.scope.resource.Key(accessor.GetNamespace(), accessor.GetName())
	}
	return key, rv
}

// uncached returns the object behind one that keeps its encodings.
func uncached(obj runtime.Object) runtime.Object {
	if cacheable, ok := obj.(runtime.CacheableObject); ok {
		return cacheable.GetObject()
	}
	return obj
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

package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/negotiation"
	"listwatch/internal/probe"
)

// WatchServer drains one watch into one response. It is used once, by one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: WatchServer
// Differs: it always runs in the goroutine of the request.
type WatchServer struct {
	// Set by newWatchServer, never changed.
	scope     *Scope
	watching  watch.Interface
	timeout   time.Duration
	watchList bool // the client waits for the bookmark that ends the initial events
	media     negotiation.MediaType
	probe     *probe.Probe // of the watcher
	meter     WatchMeter
	keyOf     reflector.KeyFunc // the scope's, bound once

	// Owned by the goroutine of the request.
	encoder *watchEncoder
	started time.Time
	awaited bool // the end of the initial events has yet to come
}

// newWatchServer settles how events are written. Errors: 400, 406.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: serveWatchHandler
func (s *Scope) newWatchServer(r *http.Request, watching watch.Interface, timeout time.Duration, output negotiation.MediaType, watchList bool) (*WatchServer, error) {
	media, err := negotiation.Stream(output)
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
		meter:     s.server.meter.Watch(r, s),
		keyOf:     s.keyOf,
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
	// close ends the stream, and says why where the protocol has a place for it.
	close(why ending)
}

// ending is why a stream ends.
type ending struct {
	reason    string
	goingAway bool // the whole server ends, and not just this stream
}

// Endings that have no error of their own.
var (
	clientGone      = ending{reason: "the client is gone"}
	serverShutsDown = ending{reason: "the server shuts down", goingAway: true}
	timeIsOver      = ending{reason: "timeoutSeconds is over"}
	watchHasEnded   = ending{reason: "the watch has ended"}
)

// HandleHTTP streams events until the watch ends, the time is over, the client goes away, or the server shuts down. An
// error is one that came before the first byte; after that there is no way to tell the client of any.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: (*WatchServer).HandleHTTP
func (s *WatchServer) HandleHTTP(w http.ResponseWriter, r *http.Request) error {
	flusher, ok := flusherOf(w)
	if !ok {
		return errors.New("unable to start watch - can't get http.Flusher: " + r.Proto)
	}
	writer := newWatchWriter(w, flusher, s.watchList && negotiation.AcceptsGzip(r))
	writer.beginStream(s.media.Name)
	s.run(r.Context(), r, writer)
	return nil
}

// run serves an open stream to its end. ctx ends when the client is gone.
func (s *WatchServer) run(ctx context.Context, r *http.Request, to stream) {
	timer := s.scope.server.clock.NewTimer(s.timeout)
	defer timer.Stop()
	s.probe.Text(probe.WireOpened, r.UserAgent()+" "+strings.TrimPrefix(requestLine(r), r.Method+" "), "", 0)
	why := s.serve(ctx, to, timer.C())
	to.close(why)
	s.probe.Text(probe.WireClosed, why.reason, "", 0)
}

// serve is the loop. It returns why it ended.
func (s *WatchServer) serve(ctx context.Context, to stream, timeout <-chan time.Time) ending {
	events := s.watching.ResultChan()
	for {
		select {
		case <-ctx.Done():
			return s.unlessShutDown(clientGone)
		case <-s.scope.server.shutdown:
			return serverShutsDown
		case <-timeout:
			return timeIsOver
		case event, ok := <-events:
			if !ok {
				return s.unlessShutDown(watchHasEnded)
			}
			if err := s.send(to, event, events); err != nil {
				return s.unlessShutDown(ending{reason: err.Error()})
			}
		}
	}
}

// unlessShutDown returns other, or the true reason: a server that shuts down ends the contexts of its requests and cuts
// connections, which looks from here as if the client had done it. Shutdown is closed before, so it decides.
func (s *WatchServer) unlessShutDown(other ending) ending {
	select {
	case <-s.scope.server.shutdown:
		return serverShutsDown
	default:
		return other
	}
}

// send writes one event, and flushes unless more are waiting: while there is a backlog the client gets it in as few
// packets as possible, and once there is none it gets every event at once.
func (s *WatchServer) send(to stream, event watch.Event, events <-chan watch.Event) error {
	key, rv := reflector.Identify(s.probe, s.keyOf, event.Object)
	s.probe.Event(probe.ResultReceived, string(event.Type), key, rv, len(events), cap(events))
	n, err := s.encoder.Encode(event, to)
	if err != nil {
		return err
	}
	s.probe.Event(probe.FrameWritten, string(event.Type), key, rv, n, len(events))
	s.meter.Sent(n)
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
	s.meter.Listed(s.scope.server.clock.Since(s.started))
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

package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/observe/probe"
)

// WatchServer drains one watch into one response. It is used once, by the request's goroutine:
// then this goroutine stops the watch. A write blocks while the client does not read, at most
// until ten seconds after the timeout.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: WatchServer
// Differs: it always runs in the goroutine of the request. Frames are JSON only, so there is no
// Framer and no UseTextFraming. The timeout is a duration; upstream has a TimeoutFactory.
type WatchServer struct {
	// Set by newWatchServer, never changed.
	scope    *Scope
	watching watch.Interface
	timeout  time.Duration
	media    negotiation.MediaType
	probe    *probe.Probe // of the watcher
	meter    WatchMeter
	keyOf    reflector.KeyFunc // the resource's, by which the log knows objects; bound once

	// Owned by the goroutine of the request.
	encoder *watchEncoder
	started time.Time
	awaited bool // the client waits for the bookmark that ends the initial events
}

// newWatchServer negotiates the form of the events. Errors: 400, 406.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: serveWatchHandler
func (s *Scope) newWatchServer(r *http.Request, watching watch.Interface, timeout time.Duration,
	output negotiation.MediaType, watchList bool) (*WatchServer, error) {
	media, err := negotiation.Stream(output)
	if err != nil {
		return nil, err
	}
	options, err := negotiation.TableOptions(r, media)
	if err != nil {
		return nil, err
	}
	return &WatchServer{
		scope:    s,
		watching: watching,
		timeout:  timeout,
		media:    media,
		probe:    probe.Of(watching),
		meter:    s.server.Meter.Watch(r, s),
		keyOf:    s.Resource.ObjectKey,
		encoder:  newWatchEncoder(s, media, options),
		started:  s.server.Clock.Now(),
		awaited:  watchList,
	}, nil
}

// stream is the destination of a [WatchServer]. Each frame is one Write.
type stream interface {
	io.Writer
	// Flush sends what was written.
	Flush() error
	// Close ends the stream, with the reason if the protocol has a place for it. goingAway: the whole server ends.
	Close(reason string, goingAway bool)
}

// The reasons why a stream ends, besides errors.
const (
	clientGone      = "the client is gone"
	serverShutsDown = "the server shuts down"
	timeIsOver      = "timeoutSeconds is over"
	watchHasEnded   = "the watch has ended"
)

// HandleHTTP streams events until the watch ends, the time is over, the client goes away, or
// the server shuts down. It returns an error only before the first byte; a later one is an
// event of the stream, or ends it.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: (*WatchServer).HandleHTTP
// Differs: always ends with the server; upstream's does so only with
// --shutdown-watch-termination-grace-period.
func (s *WatchServer) HandleHTTP(w http.ResponseWriter, r *http.Request) error {
	flusher, ok := w.(http.Flusher)
	if !ok {
		return errors.New("unable to start watch - can't get http.Flusher: " + r.Proto)
	}
	s.run(r.Context(), r, newWatchWriter(w, flusher, s.media.Name))
	return nil
}

// HandleWS is HandleHTTP with the messages of a websocket, one for each event.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: (*WatchServer).HandleWS
// Differs: ends with the server, as HandleHTTP does here, counts its events, and closes with a
// reason; upstream's close message is always 1000, without one.
func (s *WatchServer) HandleWS(w http.ResponseWriter, r *http.Request) {
	ctx, socket := upgrade(w, r, s.scope.server.Patience)
	if socket != nil {
		s.run(ctx, r, socket)
	}
}

// run serves an open stream to its end. ctx ends when the client is gone.
func (s *WatchServer) run(ctx context.Context, r *http.Request, to stream) {
	timer := s.scope.server.Clock.NewTimer(s.timeout)
	defer timer.Stop()
	said := describe(r)
	s.probe.Texts(probe.WireOpened, []string{r.UserAgent(), said[1], said[2], said[4]}, "", 0)
	why := s.serve(ctx, to, timer.C())
	to.Close(why, why == serverShutsDown)
	s.probe.Text(probe.WireClosed, why, "", 0)
}

// serve is the loop. It returns the reason of its end.
func (s *WatchServer) serve(ctx context.Context, to stream, timeout <-chan time.Time) string {
	events := s.watching.ResultChan()
	for {
		select {
		case <-ctx.Done():
			return s.unlessShutDown(clientGone)
		case <-s.scope.server.Shutdown:
			return serverShutsDown
		case <-timeout:
			return timeIsOver
		case event, ok := <-events:
			if !ok {
				return s.unlessShutDown(watchHasEnded)
			}
			if err := s.send(to, event, events); err != nil {
				return s.unlessShutDown(err.Error())
			}
		}
	}
}

// unlessShutDown returns other, or the true reason: a server that shuts down ends the contexts of its requests and cuts
// connections, as a client does. The server closes Shutdown before that.
func (s *WatchServer) unlessShutDown(other string) string {
	if s.scope.server.shutsDown() {
		return serverShutsDown
	}
	return other
}

// send writes one event, and flushes unless more are waiting: the client gets a backlog in few
// packets, and without a backlog each event at once.
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
	if err := to.Flush(); err != nil {
		return err
	}
	s.probe.At(probe.WireFlushed, key, rv)
	return nil
}

// observeWatchList measures, once, the time until the initial state was sent.
func (s *WatchServer) observeWatchList(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil || !negotiation.EndsInitialEvents(accessor) {
		return
	}
	s.awaited = false
	s.meter.Listed(s.scope.server.Clock.Since(s.started))
}

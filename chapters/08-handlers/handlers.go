package handlers

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
)

// minRequestTimeout is the shortest time limit of a watch without ?timeoutSeconds=; the longest is twice that.
// Upstream's default.
const minRequestTimeout = 30 * time.Minute

// RequestTimeout bounds every request but watches, writeTimeout the write of one object.
const (
	RequestTimeout = time.Minute
	writeTimeout   = 34 * time.Second
)

// Config describes a [Server].
type Config struct {
	// Storage holds the storage of each path: "pods", "pods/status", "pods/binding", "nodes"...
	Storage map[string]Storage

	Clock clock.WithTicker // the clock by which requests and watches end
	// Patience is the clock of waits for a client's socket; nil: Clock. A Clock that can be stopped needs another one
	// here: otherwise a client that does not read would keep a handler until time goes on.
	Patience clock.WithTicker
	Probe    *probe.Probe // nil: off

	// Shutdown, when closed, ends every watch; later requests get 429. The caller closes it before the contexts of the
	// requests end, so that streams can distinguish the server's end from their client's; nil: the server never ends.
	Shutdown <-chan struct{}

	// The parts of package apiserver. Each may be nil.
	Meter  Meter                     // counts requests, and the frames of watches
	Fields func(*Scope) FieldManager // called once for each path that can be updated
}

// Meter counts requests and watches. Its methods are called from the goroutines of requests.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go: RecordLongRunning
// Differs: an interface, of which the metrics are one implementation.
type Meter interface {
	// Begin counts the beginning of a request, end its end; scope is nil outside of resources.
	Begin(r *http.Request, scope *Scope, verb string) (end func(status int, written int64))
	// Watch returns the counter of one watch, which is used by one goroutine.
	Watch(r *http.Request, scope *Scope) WatchMeter
}

// WatchMeter counts for one watch.
type WatchMeter interface {
	// Sent counts a frame.
	Sent(bytes int)
	// Listed counts an initial state, and the time until it was sent.
	Listed(took time.Duration)
}

// FieldManager notes in an object which client has set which of its fields.
type FieldManager interface {
	// Update returns obj, which the caller owns, with a note of its changes from live. The manager's name is that of
	// the fieldManager option, or else of the User-Agent.
	Update(live, obj runtime.Object, option, userAgent string) runtime.Object
}

// uncounted is the meter of a server without one, and of its watches.
type uncounted struct{}

func (uncounted) Begin(*http.Request, *Scope, string) func(int, int64) { return func(int, int64) {} }
func (uncounted) Watch(*http.Request, *Scope) WatchMeter               { return uncounted{} }
func (uncounted) Sent(int)                                             {}
func (uncounted) Listed(time.Duration)                                 {}

// Server serves the resources of a [Config]. All handlers share it; it does not change after the first request.
type Server struct {
	Config // with its defaults
	router *chi.Mux
	scopes []*Scope
}

// New returns a server with the routes of cfg.Storage. It starts no goroutine; those of a request end with the request.
//
// Upstream: k8s.io/apiserver/pkg/server/config.go: DefaultBuildHandlerChain
// Differs: there is no authentication, authorisation, priority and fairness, audit or tracing.
func New(cfg Config) *Server {
	cfg.Patience = cmp.Or(cfg.Patience, cfg.Clock)
	cfg.Meter = cmp.Or[Meter](cfg.Meter, uncounted{})
	s := &Server{Config: cfg, router: chi.NewRouter()}
	s.router.NotFound(s.instrument(nil, "get", s.notFound))
	s.router.MethodNotAllowed(s.instrument(nil, "get", methodNotAllowed))
	s.scopes = apiInstaller{s}.install()
	return s
}

// Scopes returns the scopes of all paths, sorted: "pods", "pods/binding"… The caller must not change them once
// requests are served.
func (s *Server) Scopes() []*Scope { return s.scopes }

// Handle adds a route before the first request. Its requests are reported, counted, and limited in time. scope is nil
// outside of resources.
func (s *Server) Handle(scope *Scope, method, path, verb string, handler http.HandlerFunc) {
	s.router.Method(method, path, s.instrument(scope, verb, handler))
}

// HandlePlain adds a route whose requests are neither reported nor counted: health checks and metrics.
func (s *Server) HandlePlain(method, path string, handler http.Handler) {
	s.router.Method(method, path, handler)
}

// ServeHTTP unescapes the path for routing, and drops a slash at its end. It also hides the context of another router
// that may have passed the request on.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := chi.NewRouteContext()
	ctx.RoutePath = "/" + strings.Trim(r.URL.Path, "/")
	s.router.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, ctx)))
}

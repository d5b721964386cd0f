package handlers

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"listwatch/internal/probe"
)

// DefaultMinRequestTimeout is the shortest time after which a watch is ended whose client did not say how long it is
// to last; the longest is twice that.
const DefaultMinRequestTimeout = 30 * time.Minute

// RequestTimeout bounds every request but watches.
const RequestTimeout = time.Minute

// Config is what the API is made of.
type Config struct {
	// Storage holds what stands behind each path: "pods", "pods/status", "pods/binding", "nodes"...
	Storage map[string]Storage

	Clock clock.WithTicker
	Probe *probe.Probe // nil: off

	MinRequestTimeout time.Duration        // 0: [DefaultMinRequestTimeout]
	Ready             func() error         // nil: always ready
	Registry          *prometheus.Registry // metrics are added to it and shown at /metrics; nil: a registry of its own

	// Shutdown, when closed, ends every watch. Whoever shuts the server down closes it; nil: never.
	Shutdown <-chan struct{}
}

// server is what all handlers share. Nothing in it changes after New.
type server struct {
	clock             clock.WithTicker
	probe             *probe.Probe
	minRequestTimeout time.Duration
	ready             func() error
	shutdown          <-chan struct{}
	metrics           *metrics
	discovery         *discovery
	openapi           *openAPI
}

// New returns the handler of a whole API server: /api, /apis, /version, /openapi, health and metrics. It starts no
// goroutine; those of a request end with the request.
//
// Upstream: k8s.io/apiserver/pkg/server/config.go: DefaultBuildHandlerChain
// Differs: nobody is asked who they are or what they may do; there is no priority and fairness, audit or tracing.
func New(cfg Config) http.Handler {
	s := &server{
		clock:             cfg.Clock,
		probe:             cfg.Probe,
		minRequestTimeout: cfg.MinRequestTimeout,
		ready:             cfg.Ready,
		shutdown:          cfg.Shutdown,
		metrics:           newMetrics(cfg.Registry),
		openapi:           loadOpenAPI(),
	}
	if s.minRequestTimeout == 0 {
		s.minRequestTimeout = DefaultMinRequestTimeout
	}
	router := chi.NewRouter()
	router.NotFound(s.instrument(route{verb: "get"}, s.notFound))
	router.MethodNotAllowed(s.instrument(route{verb: "get"}, methodNotAllowed))
	installer := &apiInstaller{server: s, router: router, storage: cfg.Storage}
	s.discovery = newDiscovery(installer.install())
	s.installDiscovery(router)
	s.installHealth(router)
	return cleanPath(router)
}

// cleanPath makes routing see the path as it is meant: unescaped, and without a slash at its end. It also shields our
// router from one that may have handed the request on.
func cleanPath(router *chi.Mux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := chi.NewRouteContext()
		ctx.RoutePath = "/" + strings.Trim(r.URL.Path, "/")
		routed := r.WithContext(contextWithRoute(r.Context(), ctx))
		router.ServeHTTP(w, routed)
	})
}

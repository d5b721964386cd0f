// Package apiserver is what kubectl needs of an API server besides the path of chapter 08: discovery, OpenAPI, patches,
// server-side apply, managed fields, metrics and health. It is built on the types of the handlers.
//
// Upstream: k8s.io/apiserver/pkg/server
package apiserver

import (
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"

	handlers "listwatch/chapters/08-handlers"
)

// Config is what the API is made of. [New] fills in what handlers leave to it: who counts, and who owns fields.
type Config struct {
	handlers.Config

	Ready     func() error         // why the caches are not; nil: always ready
	EtcdReady func() error         // why etcd would refuse a write; nil: not asked
	Registry  *prometheus.Registry // metrics are added to it and shown at /metrics; nil: a registry of its own
}

// API is the handler of a whole API server. Which kinds it serves may change while it does.
type API struct {
	// Set by New, never changed.
	config  Config
	metrics *metrics

	serving atomic.Pointer[handlers.Server] // replaced by Serve
}

// Serve serves custom beside the storages of the configuration, and no longer those of an earlier call. A request under
// way goes on with what it has found. Serve is called by one goroutine at a time.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go: crdHandler
// Differs: all routes are made again, where upstream looks for a custom resource when no other route fits.
func (a *API) Serve(custom map[string]handlers.Storage) { a.serving.Store(a.newServer(custom)) }

// Scopes returns what is served at this moment, sorted by path. The caller must not change it.
func (a *API) Scopes() []*handlers.Scope { return a.serving.Load().Scopes() }

// ServeHTTP serves a request with the kinds of this moment.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serving.Load().ServeHTTP(w, r) }

// New returns the handler of a whole API server. It starts no goroutine; those of a request end with the request.
// Beside the routes of [handlers.Server] it has these:
//
//	PATCH  …/{name} and …/{name}/status   four kinds of patch; one is server-side apply  patch.go, field_manager.go
//	POST   /apis/authorization.k8s.io/…   what a client may do: everything                   reviews.go
//	GET    /api, /apis and below          what resources there are                           discovery.go
//	GET    /version                       which kube-apiserver this is like                  discovery.go
//	GET    /openapi/v2, /openapi/v3       what their fields are                              openapi.go
//	GET    /healthz, /livez, /readyz      whether the server is alive, and can serve         health.go
//	GET    /metrics                       what it has counted                                metrics.go
//
// Upstream: k8s.io/apiserver/pkg/server/config.go: DefaultBuildHandlerChain
func New(cfg Config) *API {
	a := &API{config: cfg, metrics: newMetrics(cfg.Clock, cfg.Registry)}
	a.config.Meter, a.config.Fields = a.metrics, newFieldManager
	a.Serve(nil)
	return a
}

func (a *API) newServer(custom map[string]handlers.Storage) *handlers.Server {
	config := a.config.Config
	config.Storage = reviews()
	maps.Copy(config.Storage, a.config.Storage)
	maps.Copy(config.Storage, custom)
	server := handlers.New(config)
	for _, s := range server.Scopes() {
		installPatch(server, s)
	}
	newDiscovery(server.Scopes()).install(server)
	loadOpenAPI().with(server.Scopes()).install(server)
	a.installHealth(server)
	return server
}

// installPatch adds PATCH where an object can be read and updated, and says so in the verbs that discovery shows.
func installPatch(server *handlers.Server, s *handlers.Scope) {
	_, getter := s.Storage.(handlers.Getter)
	_, updater := s.Storage.(handlers.Updater)
	if !getter || !updater {
		return
	}
	answer := func(w http.ResponseWriter, r *http.Request) (runtime.Object, int, error) { return patch(s, w, r) }
	server.Handle(s, http.MethodPatch, s.ItemPath(), "patch", s.Answer(answer))
	s.Verbs = append(s.Verbs, "patch")
	slices.Sort(s.Verbs)
}

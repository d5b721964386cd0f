// Package apiserver adds to the handlers of chapter 08 what kubectl needs: discovery, OpenAPI, patches, server-side
// apply, managed fields, evictions, metrics and health.
//
// Upstream: k8s.io/apiserver/pkg/server
package apiserver

import (
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"

	handlers "listwatch/chapters/08-handlers"
)

// Config describes an API server. [New] adds the meter and the field managers to the handlers' part.
type Config struct {
	handlers.Config

	Ready     func() error         // why the caches are not; nil: always ready
	EtcdReady func() error         // why etcd would refuse a write; nil: not checked
	Registry  *prometheus.Registry // metrics are added to it and shown at /metrics; nil: a registry of its own
}

// Handler returns [New] in the form in which the server half of a pipeline takes it.
func Handler(etcdReady func() error) func(handlers.Config, *prometheus.Registry, func() error) http.Handler {
	return func(config handlers.Config, registry *prometheus.Registry, ready func() error) http.Handler {
		return New(Config{Config: config, Ready: ready, EtcdReady: etcdReady, Registry: registry})
	}
}

// New returns the handler of a whole API server. It starts no goroutine; those of a request end with the request.
// Beside the routes of [handlers.Server] it has these:
//
//	PATCH  …/{name} and …/{name}/status   four kinds of patch; one is server-side apply  patch.go, field_manager.go
//	POST   …/bindings and …/{name}/eviction   older bindings, and kubectl drain                 pods.go
//	GET    …/pods/{name}/log              what a pod's status tells of its containers        logs.go
//	GET    …/{name}/scale, PUT, PATCH     how many pods a workload has                       scale.go
//	POST   /apis/authorization.k8s.io/…   what a client may do: everything                   reviews.go
//	GET    /api, /apis and below          what resources there are                           discovery.go
//	GET    /version                       which kube-apiserver this is like                  discovery.go
//	GET    /openapi/v2, /openapi/v3       what their fields are                              openapi.go
//	GET    /healthz, /livez, /readyz      whether the server is alive, and can serve         health.go
//	GET    /metrics                       what it has counted                                metrics.go
//
// Upstream: k8s.io/apiserver/pkg/server/config.go: DefaultBuildHandlerChain
func New(config Config) *handlers.Server {
	storages := reviews()
	maps.Copy(storages, config.Storage)
	addPodPaths(storages)
	addScales(storages)
	config.Storage = storages
	metrics := newMetrics(config.Clock, config.Registry)
	config.Meter, config.Fields = metrics, newFieldManager
	server := handlers.New(config.Config)
	for _, s := range server.Scopes() {
		installPatch(server, s)
		installLog(server, s)
	}
	newDiscovery(server.Scopes()).install(server)
	loadOpenAPI().install(server)
	installHealth(server, &config, metrics)
	return server
}

// installPatch adds PATCH, also to the verbs of discovery, where an object can be read and updated.
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

// Package apiserver extends the handlers of chapter 08 with whatever else kubectl needs: discovery, OpenAPI, patches,
// server-side apply, managed fields, evictions, scales, logs, access reviews, metrics and health. It changes objects
// only through the registry. The sessions of internal/check/compat/kubectl show how a change affects kubectl.
//
// Upstream: k8s.io/apiserver/pkg/server
package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	handlers "listwatch/chapters/08-handlers"
)

// Config describes an API server. [New] sets Meter and Fields, and adds storages to a copy of Storage.
type Config struct {
	handlers.Config

	Ready     func() error         // returns why the caches or namespaces are not ready; nil: not checked
	EtcdReady func() error         // returns why etcd would refuse a write; nil: not checked
	Registry  *prometheus.Registry // for this server's metrics, at /metrics; nil: New makes one
}

// Handler adapts [New] to the function that the server half of a pipeline expects. etcdReady may be nil.
func Handler(etcdReady func() error) func(handlers.Config, *prometheus.Registry, func() error) http.Handler {
	return func(config handlers.Config, registry *prometheus.Registry, ready func() error) http.Handler {
		return New(Config{Config: config, Ready: ready, EtcdReady: etcdReady, Registry: registry})
	}
}

// New returns the handler of a whole API server. It starts no goroutine, and a request's goroutines end with the
// request. To the routes of [handlers.Server] it adds patches, more subresources, older bindings, access reviews,
// discovery, OpenAPI documents, the version, health and metrics.
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

// installPatch adds PATCH to a path and to its verbs in discovery, if the storage can read and update an object.
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

// installHealth registers health checks and metrics. The server is alive as long as it answers. It is ready when every
// cache is filled, the system's namespaces exist, and etcd accepts writes.
//
// Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go
// Differs: upstream's livez checks etcd, too. Here a restart would help neither etcd nor the caches, which still
// answer.
func installHealth(server *handlers.Server, config *Config, m *metrics) {
	server.HandlePlain(http.MethodGet, "/healthz", &health{name: "healthz"})
	server.HandlePlain(http.MethodGet, "/livez", &health{name: "livez"})
	server.HandlePlain(http.MethodGet, "/readyz", &health{name: "readyz", checks: []check{
		{"etcd", config.EtcdReady}, {"watch-cache", config.Ready}}})
	server.HandlePlain(http.MethodGet, "/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
}

// check is one condition of readiness.
type check struct {
	name string
	ask  func() error // nil: not checked
}

// health serves one health endpoint: 200, or 500 if a check fails. With ?verbose or a failed check it lists all checks.
type health struct {
	name   string
	checks []check
}

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	said, code := "[+]ping ok\n", http.StatusOK
	for _, each := range h.checks {
		if each.ask == nil {
			continue
		}
		if err := each.ask(); err != nil {
			said += fmt.Sprintf("[-]%s failed: %v\n", each.name, err)
			code = http.StatusInternalServerError
			continue
		}
		said += fmt.Sprintf("[+]%s ok\n", each.name)
	}
	switch {
	case code != http.StatusOK:
		writeText(w, code, said+h.name+" check failed\n")
	case r.URL.Query().Has("verbose"):
		writeText(w, code, said+h.name+" check passed\n")
	default:
		writeText(w, code, "ok")
	}
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

// metrics measures requests and watches, under upstream's names.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go
// Differs: the gauge of requests in flight has the present number; upstream's has the maximum of the last second.
// dry_run is All or empty, where upstream also has invalid. Upstream has durations and sizes of watches, too.
type metrics struct {
	clock         clock.PassiveClock
	registry      *prometheus.Registry
	requests      *prometheus.CounterVec
	durations     *prometheus.HistogramVec
	inflight      *prometheus.GaugeVec
	sizes         *prometheus.HistogramVec
	longRunning   *prometheus.GaugeVec
	watchEvents   *prometheus.CounterVec
	watchSizes    *prometheus.HistogramVec
	watchListTime *prometheus.HistogramVec
}

func newMetrics(clk clock.PassiveClock, registry *prometheus.Registry) *metrics {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	request := []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	resource := request[1:4]
	with := func(labels []string, more ...string) []string { return slices.Concat(labels, more) }
	register := promauto.With(registry)
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels []string) *prometheus.GaugeVec {
		return register.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels []string, buckets []float64) *prometheus.HistogramVec {
		return register.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		clock:    clk,
		registry: registry,
		requests: counter("apiserver_request_total", "Requests answered, by verb, resource and code.",
			with(request, "code", "dry_run")),
		durations: histogram("apiserver_request_duration_seconds", "Time from request to answer, watches excepted.",
			with(request, "dry_run"), []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 4, 5, 6, 8,
				10, 15, 20, 30, 45, 60}),
		inflight: gauge("apiserver_current_inflight_requests", "Requests being served, watches excepted.",
			[]string{"request_kind"}),
		sizes: histogram("apiserver_response_sizes",
			"Size of the answers to reads, in bytes as sent, watches excepted.", request,
			prometheus.ExponentialBuckets(1000, 10, 7)),
		longRunning: gauge("apiserver_longrunning_requests", "Watches and logs being served.", request),
		watchEvents: counter("apiserver_watch_events_total", "Events sent to watch clients.", resource),
		watchSizes: histogram("apiserver_watch_events_sizes", "Size of the frames sent to watch clients, in bytes.",
			resource, prometheus.ExponentialBuckets(1024, 2, 8)),
		watchListTime: histogram("apiserver_watch_list_duration_seconds",
			"Time until the initial state of a watch was sent.", with(resource, "scope"),
			[]float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60}),
	}
	for _, kind := range []string{"readOnly", "mutating"} {
		m.inflight.WithLabelValues(kind) // creates the series, with value 0
	}
	return m
}

// scopeOf returns the scope label: resource for one object or a create, otherwise namespace or cluster.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go: CleanScope
func scopeOf(s *handlers.Scope, r *http.Request, verb string) string {
	namespace, name := s.NamespaceAndName(r)
	switch {
	case name != "" || verb == "create":
		return "resource"
	case namespace != "":
		return "namespace"
	default:
		return "cluster"
	}
}

// Begin counts a request as in flight. end, called with the response's code and size in bytes, records the request.
func (m *metrics) Begin(r *http.Request, s *handlers.Scope, verb string) (end func(code int, size int64)) {
	labels := []string{upstreamVerbs[verb], "", "", "", "", "", "apiserver"}
	if s != nil {
		gv := s.Resource.GroupVersion
		labels = []string{upstreamVerbs[verb], gv.Group, gv.Version, s.Resource.Name, s.Subresource,
			scopeOf(s, r, verb), "apiserver"}
	}
	dryRun, kind := "", "mutating" // kind is a label; upstream limits the two kinds separately
	if r.URL.Query().Get("dryRun") == metav1.DryRunAll {
		dryRun = metav1.DryRunAll
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		kind = "readOnly"
	}
	started, open := m.clock.Now(), m.inflight.WithLabelValues(kind)
	if verb == "watch" || verb == "connect" {
		open = m.longRunning.WithLabelValues(labels...)
	}
	open.Inc()
	return func(code int, size int64) {
		open.Dec()
		if verb != "watch" {
			m.durations.WithLabelValues(append(labels, dryRun)...).Observe(m.clock.Since(started).Seconds())
		}
		if verb == "get" || verb == "list" {
			m.sizes.WithLabelValues(labels...).Observe(float64(size))
		}
		m.requests.WithLabelValues(append(labels, strconv.Itoa(code), dryRun)...).Inc()
	}
}

// upstreamVerbs maps the handlers' verbs to the values of the metrics' label verb.
var upstreamVerbs = map[string]string{
	"get": "GET", "list": "LIST", "watch": "WATCH", "create": "POST", "update": "PUT", "patch": "PATCH",
	"delete": "DELETE", "deletecollection": "DELETECOLLECTION", "connect": "CONNECT",
}

// watchMetrics measures the frames and the initial state of one watch. It holds the watch's series, because a look-up
// by labels for each event would be slow.
type watchMetrics struct {
	events   prometheus.Counter
	sizes    prometheus.Observer
	listTime prometheus.Observer
}

func (m *metrics) Watch(r *http.Request, s *handlers.Scope) handlers.WatchMeter {
	gv, name := s.Resource.GroupVersion, s.Resource.Name
	return watchMetrics{
		events:   m.watchEvents.WithLabelValues(gv.Group, gv.Version, name),
		sizes:    m.watchSizes.WithLabelValues(gv.Group, gv.Version, name),
		listTime: m.watchListTime.WithLabelValues(gv.Group, gv.Version, name, scopeOf(s, r, "watch")),
	}
}

func (w watchMetrics) Sent(bytes int) {
	w.events.Inc()
	w.sizes.Observe(float64(bytes))
}

func (w watchMetrics) Listed(took time.Duration) { w.listTime.Observe(took.Seconds()) }

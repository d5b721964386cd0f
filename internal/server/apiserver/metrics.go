package apiserver

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	handlers "listwatch/chapters/08-handlers"
)

// metrics counts requests under upstream's names.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go
// Differs: requests in flight are counted as of now; upstream shows the most there were within the last second. dry_run
// is All or empty, where upstream also has invalid.
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
	registry.MustRegister(collectors.NewGoCollector(),
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
		longRunning: gauge("apiserver_longrunning_requests", "Watches being served.", request),
		watchEvents: counter("apiserver_watch_events_total", "Events sent to watch clients.", resource),
		watchSizes: histogram("apiserver_watch_events_sizes", "Size of the frames sent to watch clients, in bytes.",
			resource, prometheus.ExponentialBuckets(1024, 2, 8)),
		watchListTime: histogram("apiserver_watch_list_duration_seconds",
			"Time until the initial state of a watch was sent.", with(resource, "scope"),
			[]float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60}),
	}
	for _, kind := range []string{"readOnly", "mutating"} {
		m.inflight.WithLabelValues(kind) // shown from the start
	}
	return m
}

// scopeOf returns the scope label: one object, one namespace, or the cluster.
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

// Begin counts a request in. end counts it out, with the code and the size of its answer.
func (m *metrics) Begin(r *http.Request, s *handlers.Scope, verb string) (end func(code int, size int64)) {
	labels := []string{upstreamVerbs[verb], "", "", "", "", "", "apiserver"}
	if s != nil {
		gv := s.Resource.GroupVersion
		labels = []string{upstreamVerbs[verb], gv.Group, gv.Version, s.Resource.Name, s.Subresource,
			scopeOf(s, r, verb), "apiserver"}
	}
	dryRun, kind := "", "mutating" // which of upstream's two limits it would count against
	if r.URL.Query().Get("dryRun") == metav1.DryRunAll {
		dryRun = metav1.DryRunAll
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		kind = "readOnly"
	}
	started, open := m.clock.Now(), m.inflight.WithLabelValues(kind)
	if verb == "watch" {
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

// upstreamVerbs are the verbs as the metrics call them.
var upstreamVerbs = map[string]string{
	"get": "GET", "list": "LIST", "watch": "WATCH", "create": "POST", "update": "PUT", "patch": "PATCH",
	"delete": "DELETE", "deletecollection": "DELETECOLLECTION",
}

// watchMetrics counts for one watch. The series are looked up once: an event must not cost a search by labels.
type watchMetrics struct {
	events   prometheus.Counter
	sizes    prometheus.Observer
	listTime prometheus.Observer
}

// Watch returns what counts one watch.
func (m *metrics) Watch(r *http.Request, s *handlers.Scope) handlers.WatchMeter {
	gv, name := s.Resource.GroupVersion, s.Resource.Name
	return watchMetrics{
		events:   m.watchEvents.WithLabelValues(gv.Group, gv.Version, name),
		sizes:    m.watchSizes.WithLabelValues(gv.Group, gv.Version, name),
		listTime: m.watchListTime.WithLabelValues(gv.Group, gv.Version, name, scopeOf(s, r, "watch")),
	}
}

// Sent counts a frame.
func (w watchMetrics) Sent(bytes int) {
	w.events.Inc()
	w.sizes.Observe(float64(bytes))
}

// Listed observes how long the initial state took.
func (w watchMetrics) Listed(took time.Duration) { w.listTime.Observe(took.Seconds()) }

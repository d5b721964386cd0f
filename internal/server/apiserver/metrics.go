package apiserver

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/utils/clock"

	handlers "listwatch/chapters/08-handlers"
)

// metrics counts requests under upstream's names.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go
// Differs: requests in flight are counted as of now; upstream shows the most there were within the last second.
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
	m := &metrics{
		clock:    clk,
		registry: registry,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total",
			Help: "Requests answered, by verb, resource and code.",
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component", "code", "dry_run"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds",
			Help: "Time from request to answer, watches excepted.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30,
				45, 60},
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component", "dry_run"}),
		inflight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_current_inflight_requests",
			Help: "Requests being served, watches excepted.",
		}, []string{"request_kind"}),
		sizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_response_sizes",
			Help:    "Size of the answers to reads, in bytes as sent, watches excepted.",
			Buckets: prometheus.ExponentialBuckets(1000, 10, 7),
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}),
		longRunning: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests",
			Help: "Watches being served.",
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}),
		watchEvents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_events_total",
			Help: "Events sent to watch clients.",
		}, []string{"group", "version", "resource"}),
		watchSizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_watch_events_sizes",
			Help:    "Size of the frames sent to watch clients, in bytes.",
			Buckets: prometheus.ExponentialBuckets(1024, 2, 8),
		}, []string{"group", "version", "resource"}),
		watchListTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_watch_list_duration_seconds",
			Help:    "Time until the initial state of a watch was sent.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60},
		}, []string{"group", "version", "resource", "scope"}),
	}
	for _, kind := range []string{"readOnly", "mutating"} {
		m.inflight.WithLabelValues(kind) // shown from the start
	}
	registry.MustRegister(m.requests, m.durations, m.inflight, m.sizes, m.longRunning, m.watchEvents, m.watchSizes,
		m.watchListTime)
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// requestLabels returns the values that every request's metrics begin with.
func requestLabels(s *handlers.Scope, r *http.Request, verb string) []string {
	if s == nil {
		return []string{upstreamVerbs[verb], "", "", "", "", "", "apiserver"}
	}
	gv := s.Resource.GroupVersion
	return []string{upstreamVerbs[verb], gv.Group, gv.Version, s.Resource.Name, s.Subresource, scopeOf(s, r, verb),
		"apiserver"}
}

// scopeOf says what a request is about: one object, one namespace, or everything.
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

// Begin counts a request in.
func (m *metrics) Begin(r *http.Request, s *handlers.Scope, verb string) (end func(code int, size int64)) {
	c := &counted{
		metrics: m, labels: requestLabels(s, r, verb), started: m.clock.Now(), watching: verb == "watch",
		reading: verb == "get" || verb == "list", kind: requestKind(r), dryRun: cleanDryRun(r),
	}
	if c.watching {
		m.longRunning.WithLabelValues(c.labels...).Inc()
	} else {
		m.inflight.WithLabelValues(c.kind).Inc()
	}
	return c.end
}

// counted is a request that was counted in and has yet to be counted out.
type counted struct {
	metrics  *metrics
	labels   []string
	started  time.Time
	watching bool
	reading  bool // of an object or a list
	kind     string
	dryRun   string
}

// end counts the request out, with the code and the size of its answer.
func (c *counted) end(code int, size int64) {
	m := c.metrics
	if c.watching {
		m.longRunning.WithLabelValues(c.labels...).Dec()
	} else {
		m.inflight.WithLabelValues(c.kind).Dec()
		m.durations.WithLabelValues(append(c.labels, c.dryRun)...).Observe(m.clock.Since(c.started).Seconds())
	}
	if c.reading {
		m.sizes.WithLabelValues(c.labels...).Observe(float64(size))
	}
	m.requests.WithLabelValues(append(c.labels, strconv.Itoa(code), c.dryRun)...).Inc()
}

// cleanDryRun returns what a request says of dry runs, and no more words than there can be series.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go: cleanDryRun
func cleanDryRun(r *http.Request) string {
	said := r.URL.Query()["dryRun"]
	switch {
	case len(said) == 0:
		return ""
	case len(validation.ValidateDryRun(nil, said)) > 0:
		return "invalid"
	default:
		return metav1.DryRunAll
	}
}

// requestKind says which of upstream's two limits a request would count against.
func requestKind(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return "readOnly"
	}
	return "mutating"
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

package cacher

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// metrics are the metrics of one Cacher, under upstream's names and with upstream's labels. The fields count rare
// things; the Cacher counts things that happen for every event, and is read when /metrics is.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go
// Differs: apiserver_watch_events_dispatch_duration_seconds is left out: it needs the time twice for each watcher and
// event, half of what such a delivery costs. So are the metrics of what we do not have (consistency checker, sharded
// watches), and those of lists that 1.37 deprecates. apiserver_init_events_total lacks intervals cut short by a stop.
type metrics struct {
	// Set by newMetrics, never changed.
	all     *prometheus.Registry // this Cacher's alone: registry shows it as one collector
	factory promauto.Factory     // adds to all, with group and resource as labels

	initializations        prometheus.Counter
	initializationErrors   prometheus.Counter
	initializationDuration prometheus.Histogram
	readWait               prometheus.Histogram
	consistentReads        *prometheus.CounterVec // by success and fallback
}

// newMetrics returns the metrics of one resource's Cacher. They are not shown yet.
func newMetrics(resource schema.GroupResource) *metrics {
	all := prometheus.NewRegistry()
	labels := prometheus.Labels{"group": resource.Group, "resource": resource.Resource}
	factory := promauto.With(prometheus.WrapRegistererWith(labels, all))
	return &metrics{
		all: all, factory: factory,
		initializations: factory.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_watch_cache_initializations_total",
			Help: "How often the watch cache was filled."}),
		initializationErrors: factory.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_watch_cache_initialization_errors_total",
			Help: "How often filling or following the storage ended with an error."}),
		initializationDuration: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "apiserver_watch_cache_initialization_duration_seconds",
			Help:    "Time until the watch cache held its first state.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600}}),
		readWait: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "apiserver_watch_cache_read_wait_seconds",
			Help:    "Time a reader waited until the watch cache had reached its version.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3}}),
		consistentReads: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_cache_consistent_read_total",
			Help: "Lists of the newest state that the watch cache was asked for."}, []string{"success", "fallback"}),
	}
}

// initialized counts one filling of the cache, and the time that it took.
func (m *metrics) initialized(took time.Duration) {
	m.initializations.Inc()
	m.initializationDuration.Observe(took.Seconds())
}

// resourceVersionDigits bounds the metric of the resource version: a float holds so many digits exactly. Upstream's.
const resourceVersionDigits = 1_000_000_000_000_000

// registerMetrics shows all metrics in registry, unless registry is nil. It fails if registry already shows another
// Cacher of the same resource.
func (c *Cacher) registerMetrics(registry *prometheus.Registry) error {
	if registry == nil {
		return nil
	}
	cache := c.watchCache.Snapshot
	counter := func(name, help string, value func() int64) {
		c.metrics.factory.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(value()) })
	}
	gauge := func(name, help string, value func() uint64) {
		c.metrics.factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value()) })
	}
	counter("apiserver_watch_cache_events_received_total", "Events that came from the storage.",
		func() int64 { return cache().EventsReceived })
	counter("apiserver_watch_cache_events_dispatched_total",
		"Events taken to their watchers, bookmarks of the storage included.", c.nDispatched.Load)
	// upstream logs them only
	counter("listwatch_watch_cache_store_errors_total", "Events that the watch cache could not take, and misses.",
		c.reflector.StoreErrors)
	counter("apiserver_terminated_watchers_total", "Watchers closed because they did not keep up.", c.nTerminated.Load)
	counter("apiserver_init_events_total", "Events with which watches began.", c.nInit.Load)
	counter("watch_cache_capacity_increase_total", "How often the history ring grew.",
		func() int64 { return int64(cache().CapacityIncreases) })
	counter("watch_cache_capacity_decrease_total", "How often the history ring shrank.",
		func() int64 { return int64(cache().CapacityDecreases) })
	gauge("watch_cache_capacity", "Events that the history ring has room for.",
		func() uint64 { return uint64(cache().Capacity) })
	gauge("apiserver_watch_cache_resource_version", "How far the watch cache is; the last 15 digits.",
		func() uint64 { return cache().ResourceVersion % resourceVersionDigits })
	return registry.Register(c.metrics.all)
}

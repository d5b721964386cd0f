package cacher

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	watchcache "listwatch/chapters/04-watchcache"
)

// metrics shows what a Cacher counts under upstream's names, with upstream's labels. What is counted on the way of
// every event is a number of the station's own, and is read only when /metrics is asked: see [Cacher.collected]. The
// fields are what happens seldom enough to be counted here.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go
// Differs: apiserver_watch_events_dispatch_duration_seconds is left out: it needs the time twice for each watcher and
// event, which is half of what such a delivery costs. So are the metrics of what we do not have: the consistency
// checker, sharded watches, and those of lists that 1.37 deprecates.
type metrics struct {
	// Set by newMetrics, never changed.
	labels prometheus.Labels // group and resource

	initializations        prometheus.Counter
	initializationErrors   prometheus.Counter
	initializationDuration prometheus.Histogram
	readWait               prometheus.Histogram
	consistentReads        *prometheus.CounterVec // by success and fallback
}

func newMetrics(resource schema.GroupResource) *metrics {
	m := &metrics{labels: prometheus.Labels{"group": resource.Group, "resource": resource.Resource}}
	m.initializations = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apiserver_watch_cache_initializations_total", ConstLabels: m.labels,
		Help: "How often the watch cache was filled.",
	})
	m.initializationErrors = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apiserver_watch_cache_initialization_errors_total", ConstLabels: m.labels,
		Help: "How often filling or following the storage ended with an error.",
	})
	m.initializationDuration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "apiserver_watch_cache_initialization_duration_seconds", ConstLabels: m.labels,
		Help:    "Time until the watch cache held its first state.",
		Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600},
	})
	m.readWait = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "apiserver_watch_cache_read_wait_seconds", ConstLabels: m.labels,
		Help:    "Time a reader waited until the watch cache had reached its version.",
		Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3},
	})
	m.consistentReads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_watch_cache_consistent_read_total", ConstLabels: m.labels,
		Help: "Lists of the newest state that the watch cache was asked for.",
	}, []string{"success", "fallback"})
	return m
}

// initialized is told that the cache has been filled, and how long that took.
func (m *metrics) initialized(took time.Duration) {
	m.initializations.Inc()
	m.initializationDuration.Observe(took.Seconds())
}

// consistentRead is told how a list of the newest state ended. fallback says that the storage was asked in the end.
func (m *metrics) consistentRead(success, fallback bool) {
	m.consistentReads.WithLabelValues(strconv.FormatBool(success), strconv.FormatBool(fallback)).Inc()
}

// register shows everything in registry, nothing if that is nil. The error is that another cacher of the same resource
// is shown there already.
func (m *metrics) register(registry *prometheus.Registry, c *Cacher) error {
	if registry == nil {
		return nil
	}
	collectors := []prometheus.Collector{
		m.initializations, m.initializationErrors, m.initializationDuration, m.readWait, m.consistentReads,
	}
	for _, each := range append(collectors, c.collected()...) {
		if err := registry.Register(each); err != nil {
			return err
		}
	}
	return nil
}

// resourceVersionDigits bounds the metric of the resource version: a float holds so many digits exactly. Upstream's.
const resourceVersionDigits = 1_000_000_000_000_000

// collected returns the metrics that are read off the stations when they are asked for.
func (c *Cacher) collected() []prometheus.Collector {
	counter := func(name, help string, read func() int64) prometheus.Collector {
		opts := prometheus.CounterOpts{Name: name, Help: help, ConstLabels: c.metrics.labels}
		return prometheus.NewCounterFunc(opts, func() float64 { return float64(read()) })
	}
	cached := func(of func(watchcache.Snapshot) int) func() int64 {
		return func() int64 { return int64(of(c.watchCache.Snapshot())) }
	}
	gauge := func(name, help string, read func() int64) prometheus.Collector {
		opts := prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: c.metrics.labels}
		return prometheus.NewGaugeFunc(opts, func() float64 { return float64(read()) })
	}
	return []prometheus.Collector{
		counter("apiserver_watch_cache_events_received_total", "Events that came from the storage.",
			cached(func(s watchcache.Snapshot) int { return int(s.EventsReceived) })),
		counter("apiserver_watch_cache_events_dispatched_total", "Events taken to their watchers, bookmarks of the storage included.",
			c.nDispatched.Load),
		counter("apiserver_terminated_watchers_total", "Watchers closed because they did not keep up.", c.nTerminated.Load),
		counter("apiserver_init_events_total", "Events with which watches began.", c.nInit.Load),
		counter("watch_cache_capacity_increase_total", "How often the history ring grew.",
			cached(func(s watchcache.Snapshot) int { return s.CapacityIncreases })),
		counter("watch_cache_capacity_decrease_total", "How often the history ring shrank.",
			cached(func(s watchcache.Snapshot) int { return s.CapacityDecreases })),
		gauge("watch_cache_capacity", "Events that the history ring has room for.",
			cached(func(s watchcache.Snapshot) int { return s.Capacity })),
		gauge("apiserver_watch_cache_resource_version", "How far the watch cache is; the last 15 digits.",
			cached(func(s watchcache.Snapshot) int { return int(s.ResourceVersion % resourceVersionDigits) })),
	}
}

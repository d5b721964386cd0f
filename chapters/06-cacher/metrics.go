package cacher

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// metrics are what one Cacher shows of itself, under upstream's names and with upstream's labels. The fields are what
// happens seldom; what happens for every event is counted by the Cacher, and asked for when /metrics is.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go
// Differs: apiserver_watch_events_dispatch_duration_seconds is left out: it needs the time twice for each watcher and
// event, which is half of what such a delivery costs. So are the metrics of what we do not have: the consistency
// checker, sharded watches, and those of lists that 1.37 deprecates.
type metrics struct {
	// Set by New, never changed.
	labels prometheus.Labels // group and resource
	shown  []prometheus.Collector

	initializationErrors   prometheus.Counter
	readWait               prometheus.Histogram
	initializations        prometheus.Counter
	initializationDuration prometheus.Histogram
	consistentReads        *prometheus.CounterVec // by success and fallback
}

// newMetrics returns the metrics of one resource's Cacher. They are not shown yet.
func newMetrics(resource schema.GroupResource) *metrics {
	labels := prometheus.Labels{"group": resource.Group, "resource": resource.Resource}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		opts := prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: labels, Buckets: buckets}
		return prometheus.NewHistogram(opts)
	}
	return &metrics{
		labels: labels,
		initializations: prometheus.NewCounter(counter("apiserver_watch_cache_initializations_total",
			"How often the watch cache was filled.")),
		initializationErrors: prometheus.NewCounter(counter("apiserver_watch_cache_initialization_errors_total",
			"How often filling or following the storage ended with an error.")),
		initializationDuration: histogram("apiserver_watch_cache_initialization_duration_seconds",
			"Time until the watch cache held its first state.", 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600),
		readWait: histogram("apiserver_watch_cache_read_wait_seconds",
			"Time a reader waited until the watch cache had reached its version.",
			0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3),
		consistentReads: prometheus.NewCounterVec(counter("apiserver_watch_cache_consistent_read_total",
			"Lists of the newest state that the watch cache was asked for."), []string{"success", "fallback"}),
	}
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

// resourceVersionDigits bounds the metric of the resource version: a float holds so many digits exactly. Upstream's.
const resourceVersionDigits = 1_000_000_000_000_000

// registerMetrics shows everything in registry, nothing if that is nil. The error is that another Cacher of the same
// resource is shown there already.
func (c *Cacher) registerMetrics(registry *prometheus.Registry) error {
	if registry == nil {
		return nil
	}
	m, cache := c.metrics, c.watchCache.Snapshot
	all := []prometheus.Collector{
		m.initializations, m.initializationErrors, m.initializationDuration, m.readWait, m.consistentReads,
	}
	counter := func(name, help string, value func() int64) {
		opts := prometheus.CounterOpts{Name: name, Help: help, ConstLabels: m.labels}
		all = append(all, prometheus.NewCounterFunc(opts, func() float64 { return float64(value()) }))
	}
	gauge := func(name, help string, value func() uint64) {
		opts := prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: m.labels}
		all = append(all, prometheus.NewGaugeFunc(opts, func() float64 { return float64(value()) }))
	}
	counter("apiserver_watch_cache_events_received_total", "Events that came from the storage.",
		func() int64 { return cache().EventsReceived })
	counter("apiserver_watch_cache_events_dispatched_total",
		"Events taken to their watchers, bookmarks of the storage included.", c.nDispatched.Load)
	counter("apiserver_terminated_watchers_total",
		"Watchers closed because they did not keep up.", c.nTerminated.Load)
	counter("apiserver_init_events_total", "Events with which watches began.", c.nInit.Load)
	counter("watch_cache_capacity_increase_total", "How often the history ring grew.",
		func() int64 { return int64(cache().CapacityIncreases) })
	counter("watch_cache_capacity_decrease_total", "How often the history ring shrank.",
		func() int64 { return int64(cache().CapacityDecreases) })
	gauge("watch_cache_capacity", "Events that the history ring has room for.",
		func() uint64 { return uint64(cache().Capacity) })
	gauge("apiserver_watch_cache_resource_version", "How far the watch cache is; the last 15 digits.",
		func() uint64 { return cache().ResourceVersion % resourceVersionDigits })
	for _, each := range all {
		if err := registry.Register(each); err != nil {
			return err
		}
		m.shown = append(m.shown, each)
	}
	return nil
}

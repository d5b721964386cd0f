package cacher

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// gathered returns every value that a registry shows, by "name label=value …"; of a histogram the number of values.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families := require.Value(registry.Gather())(t)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			var labels []string
			for _, label := range metric.Label {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			name := strings.Join(append([]string{family.GetName()}, labels...), " ")
			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}

func TestMetricsHaveUpstreamsNamesAndLabels(t *testing.T) {
	registry := prometheus.NewRegistry()
	run(t, func(c *Config) { c.Registry = registry }, func(f *fixture) {
		slow := f.watch("", everything("1"))
		for i := range 25 { // more than a watcher of a quiet resource has room for
			f.create(fmt.Sprint("default/a", i))
		}
		synctest.Wait()
		fresh := f.watch("", everything("0"))
		_ = seen(fresh)
		_ = f.store.GetList(f.ctx, prefix, everything(""), newPodList())
		f.raw.noProgress.Store(true)
		f.etcd.Put("/registry/nodes/n", []byte("{}"))
		_ = f.store.GetList(f.ctx, prefix, everything(""), newPodList())
		_ = seen(slow)

		values := gathered(t, registry)
		got := func(name string) float64 { return values[name+" group= resource=pods"] }
		for name, want := range map[string]float64{
			"apiserver_watch_cache_events_received_total":           25,
			"apiserver_watch_cache_events_dispatched_total":         float64(f.nDispatched.Load()),
			"apiserver_terminated_watchers_total":                   1,
			"apiserver_init_events_total":                           25,
			"apiserver_watch_cache_initializations_total":           1,
			"apiserver_watch_cache_initialization_errors_total":     0,
			"apiserver_watch_cache_initialization_duration_seconds": 1,
			"apiserver_watch_cache_read_wait_seconds":               2,
			"apiserver_watch_cache_resource_version":                26,
			"watch_cache_capacity":                                  100,
			"watch_cache_capacity_increase_total":                   0,
			"watch_cache_capacity_decrease_total":                   0,
		} {
			_, shown := values[name+" group= resource=pods"]
			assert.True(t, shown && got(name) == want, "%s: got %v (shown: %v), want %v", name, got(name), shown, want)
		}
		for fallback := range 2 {
			name := fmt.Sprintf("apiserver_watch_cache_consistent_read_total fallback=%v group= resource=pods "+
				"success=true", fallback == 1)
			assert.True(t, values[name] == 1, "%s: got %v, want 1", name, values[name])
		}
	})
}

func TestALostSourceAndAGrowingRingAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	run(t, func(c *Config) { c.Registry = registry }, func(f *fixture) {
		for i := range 101 {
			f.create(fmt.Sprint("default/a", i))
		}
		f.raw.err.Store(new(errors.New("no")))
		f.etcd.FailWatches("etcdserver: mvcc: required revision has been compacted")
		time.Sleep(10 * time.Second)
		f.raw.err.Store(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		values := gathered(t, registry)
		for name, least := range map[string]float64{
			"watch_cache_capacity":                              200,
			"watch_cache_capacity_increase_total":               1,
			"apiserver_watch_cache_initializations_total":       2,
			"apiserver_watch_cache_initialization_errors_total": 1,
		} {
			got := values[name+" group= resource=pods"]
			assert.True(t, got >= least, "%s: got %v, want %v at least", name, got, least)
		}
	})
}

func TestTwoCachersOfOneResourceAreNotShownInOneRegistry(t *testing.T) {
	config := Config{
		Storage: struct{ storage.Interface }{}, ResourcePrefix: prefix, KeyFunc: keyFunc, NewFunc: newPod,
		NewListFunc: newPodList,
		GetAttrs:    podAttrs, Clock: newFixture(t, nil).clock, Registry: prometheus.NewRegistry(),
	}
	_, err := New(config)
	require.NoError(t, err)
	_, err = New(config)
	assert.True(t, err != nil, "the second one was made")
}

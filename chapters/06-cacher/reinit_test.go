package cacher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// expire ends the cacher's watch on the storage in the way that calls for a new list.
func (f *fixture) expire() {
	f.etcd.FailWatches(rpctypes.ErrGRPCCompacted.Error())
	synctest.Wait()
}

func TestAColdCacheRefusesWatchesWithARetryAfterThatGrows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		for _, c := range []struct {
			at   time.Duration
			want int
		}{{0, 1}, {20 * time.Second, 3}, {time.Minute, 30}} {
			time.Sleep(c.at)
			_, err := f.store.Watch(t.Context(), prefix, everything("0"))
			seconds, _ := apierrors.SuggestsClientDelay(err)
			assert.True(t, apierrors.IsTooManyRequests(err) && seconds == c.want,
				"after %v: got %v, retry after %d, want %d", c.at, err, seconds, c.want)
		}
		assert.True(t, !f.Ready(), "ready")
	})
}

func TestLosingTheHistoryEndsEveryWatchAndBeginsAnotherGeneration(t *testing.T) {
	run(t, nil, func(f *fixture) {
		rv := f.create("default/a")
		w := f.watch("", everything(rv))
		f.raw.err.Store(new(errors.New("etcd is away")))
		f.expire()
		_, err := f.store.Watch(f.ctx, prefix, everything(rv))
		assert.Fails(t, err, apierrors.IsTooManyRequests, "while away")
		time.Sleep(5 * time.Second)
		f.is("the watch", seen(w), "closed")
		f.create("default/b")
		f.raw.err.Store(nil)
		time.Sleep(2 * time.Second)
		s := f.Snapshot()
		assert.True(t, s.Ready && s.Generation == 2 && s.Cache.ListResourceVersion == 3, "%+v", s)
		f.is("resuming from before", seen(f.watch("", everything(rv))), "ERROR 410 Expired, closed")
		again := f.watch("", everything("3"))
		f.create("default/c")
		f.is("resuming from the list", seen(again), "ADDED default/c 4")
	})
}

// A watch accepted in one generation and registered in the next would miss the events between the two.
func TestAWatchThatMeetsANewGenerationEndsAtOnce(t *testing.T) {
	for name, interrupt := range map[string]func(f *fixture){
		"not ready":       func(f *fixture) { f.ready.setError(nil) },
		"next generation": func(f *fixture) { f.ready.setError(nil); f.ready.setReady() },
		"stopped":         func(f *fixture) { f.ready.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(f *fixture) {
				req := require.Value(f.newWatchRequest(prefix, everything("0")))(t)
				req.watcher = f.newWatcher(f.ctx, req)
				interrupt(f)
				f.is("watch", seen(f.startWatch(f.ctx, req)), "closed")
				assert.Equal(t, 0, len(f.Snapshot().Watchers), "watchers registered")
			})
		})
	}
}

func TestStoppingTheCacherEndsItsWatches(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		stop := bubble.Go(t, "cacher.Run", f.Run)
		require.NoError(t, f.Wait(t.Context()))
		blocked := f.stuck(f.create("default/a"))
		waiting := make(chan error, 1)
		bubble.Go(t, "test.reader", func(context.Context) {
			waiting <- f.store.GetList(t.Context(), prefix, everything("999"), newPodList())
		})
		synctest.Wait()
		start := time.Now()
		stop()
		took := time.Since(start)
		assert.True(t, took <= maxBudget, "took %v", took)
		assert.Fails(t, <-waiting, apierrors.IsServiceUnavailable, "a waiting list")
		events := seen(blocked)
		f.is("watch", events[len(events)-1:], "closed")
		_, err := f.store.Watch(f.ctx, prefix, everything("0"))
		assert.Fails(t, err, apierrors.IsTooManyRequests, "afterwards")
		assert.True(t, f.Wait(t.Context()) != nil, "waited for a stopped cacher in vain, and was not told")
	})
}

func TestAnEventComesThroughIncomingOnceAndABookmarkOnlyWithNews(t *testing.T) {
	run(t, nil, func(f *fixture) {
		before := f.Snapshot().NDispatched
		f.create("default/a")
		rv := f.update("default/a")
		synctest.Wait()
		f.is("two events", []string{fmt.Sprint(f.Snapshot().NDispatched - before)}, "2")
		f.watchCache.UpdateResourceVersion(rv)
		f.watchCache.UpdateResourceVersion("9")
		synctest.Wait()
		f.is("and two bookmarks, one of them with a new version",
			[]string{fmt.Sprint(f.Snapshot().NDispatched - before)}, "3")
		f.is("processed", []string{fmt.Sprint(f.Snapshot().LastProcessed)}, "9")
	})
}

func TestACacherThatCannotBeConfiguredIsNotMade(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no prefix": func(c *Config) { c.ResourcePrefix = "" },
		"slash":     func(c *Config) { c.ResourcePrefix = "/" },
		"no slash":  func(c *Config) { c.ResourcePrefix = "registry/pods" },
	} {
		config := Config{ResourcePrefix: prefix, Storage: &gatedStorage{}, Clock: nil}
		change(&config)
		assert.True(t, assert.ErrorOf(New(config)) != nil, "%s: accepted", name)
	}
}

// list lists through the delegator and returns "default/a 5" for each item, and the list's version.
func (f *fixture) list(opts storage.ListOptions) (items []string, rv string) {
	f.t.Helper()
	out := &corev1.PodList{}
	require.NoError(f.t, f.store.GetList(f.ctx, prefix, opts, out))
	for _, p := range out.Items {
		items = append(items, p.Namespace+"/"+p.Name+" "+p.ResourceVersion)
	}
	return items, out.ResourceVersion
}

// rewinding is a storage whose next event, once armed, carries a version of the past.
type rewinding struct {
	storage.Interface
	armed atomic.Bool
}

func (r *rewinding) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := r.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Added && r.armed.CompareAndSwap(true, false) {
			pod := event.Object.(*corev1.Pod).DeepCopy()
			pod.ResourceVersion = "1"
			event.Object = pod
		}
		return event, true
	}), nil
}

// A storage that goes back in time breaks what every replay counts on. The cache gives up what it has and lists again;
// the process, which holds every other cache too, goes on.
func TestAnEventOfThePastEndsTheCacheAndItListsAgain(t *testing.T) {
	back := &rewinding{}
	run(t, func(c *Config) { back.Interface = c.Storage; c.Storage = back }, func(f *fixture) {
		w := f.watch("", everything(f.create("default/a")))
		synctest.Wait()
		back.armed.Store(true)
		f.create("default/b")
		synctest.Wait()
		assert.False(t, f.Ready(), "the cache is ready, with an event of the past in its ring")
		time.Sleep(2 * startCachingPeriod)
		synctest.Wait()
		f.is("the watcher", seen(w), "closed")
		if snapshot := f.Snapshot(); !snapshot.Ready || snapshot.Cache.Objects != 2 {
			t.Errorf("ready %v with %d objects, want both again", snapshot.Ready, snapshot.Cache.Objects)
		}
		said := ""
		for _, r := range probetest.Records(f.log, probe.ReflectorWatchEnded) {
			said += r.Field(probe.FieldWhy)
		}
		assert.True(t, strings.Contains(said, "ADDED of /registry/pods/default/b at 1 after"),
			"the log says of the end: %q", said)
	})
}

// restored is a storage that, once armed, says that it is at version 5, and sends only what is new from then on.
type restored struct {
	storage.Interface
	armed atomic.Bool
}

func (r *restored) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	err := r.Interface.GetList(ctx, key, opts, out)
	if list, ok := out.(*corev1.PodList); ok && err == nil && r.armed.Load() {
		list.ResourceVersion = "5"
	}
	return err
}

func (r *restored) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if !r.armed.Load() {
		return r.Interface.Watch(ctx, key, opts)
	}
	if opts.ResourceVersion != "5" {
		return nil, apierrors.NewResourceExpired("of another etcd")
	}
	w := watch.NewFake()
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

// The client would resume from the bookmark's version, and never learn of the events between the list's and that.
func TestABookmarkPromisesNothingOfTheGenerationBefore(t *testing.T) {
	back := &restored{}
	over := func(c *Config) { back.Interface, c.Storage, c.UseWatchList = c.Storage, back, false }
	run(t, over, func(f *fixture) {
		for i := range 10 {
			f.create(fmt.Sprint("default/p", i))
		}
		synctest.Wait()
		assert.Equal(t, 11, f.Snapshot().LastProcessed)
		back.armed.Store(true)
		f.expire()
		time.Sleep(2 * startCachingPeriod)
		require.Equal(t, 2, f.Snapshot().Generation)
		w := f.watch("", withBookmarks(everything("5")))
		time.Sleep(time.Minute + 2*time.Second)
		f.is("the watcher, which knows all up to 5", seen(w), "")
	})
}

func TestEveryReturnToReadyIsAnotherGeneration(t *testing.T) {
	r := newReady(clock.RealClock{})
	_, _, err := r.check()
	assert.True(t, err != nil, "ready at birth")
	for want := 1; want < 4; want++ {
		assert.Equal(t, want, r.setReady(), "setReady")
		r.setReady() // a relist without an interruption goes on with the same one
		generation, _, err := r.check()
		assert.True(t, generation == want && err == nil, "check: got %d, %v, want %d", generation, err, want)
		cause := errors.New("the dog ate it")
		r.setError(cause)
		_, _, err = r.check()
		assert.True(t, errors.Is(err, cause), "check: got %v, want the cause", err)
	}
}

// compacted is a storage's compaction, at the version it holds.
type compacted struct{ atomic.Int64 }

func (c *compacted) CompactRevision() int64 { return c.Load() }

func TestSnapshotsThatTheStorageHasForgottenAreForgottenWithinFifteenSeconds(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/a")
		f.update("default/a")
		f.update("default/a")
		synctest.Wait()
		rv := f.watchCache.Snapshot().ResourceVersion
		time.Sleep(time.Minute)
		n := f.watchCache.Snapshot().Snapshots
		require.True(t, n >= 4, "%d snapshots, though nothing was compacted", n)
		f.compaction.Store(int64(rv))
		time.Sleep(compactorPollPeriod + time.Second)
		synctest.Wait()
		assert.Equal(t, 1, f.watchCache.Snapshot().Snapshots, "snapshots: the newest only")
		exact := storage.ListOptions{ResourceVersion: "2", ResourceVersionMatch: "Exact",
			Predicate: storage.Everything, Recursive: true}
		before := f.raw.nLists.Load()
		_ = f.store.GetList(f.ctx, prefix, exact, newPodList())
		assert.Equal(t, before+1, f.raw.nLists.Load(), "a forgotten version was not left to the storage")
	})
}

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
	require.Value(New(config))(t)
	assert.True(t, assert.ErrorOf(New(config)) != nil, "the second one was made")
}

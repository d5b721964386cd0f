package cacher

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1 "k8s.io/api/core/v1"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
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
		assert.True(t, f.store.ReadinessCheck() != nil, "ready")
	})
}

func TestLosingTheHistoryEndsEveryWatchAndBeginsAnotherGeneration(t *testing.T) {
	run(t, nil, func(f *fixture) {
		rv := f.create("default/a")
		w := f.watch("", everything(rv))
		f.raw.fail(errors.New("etcd is away"))
		f.expire()
		_, err := f.store.Watch(f.ctx, prefix, everything(rv))
		assert.Fails(t, err, apierrors.IsTooManyRequests, "while away")
		time.Sleep(5 * time.Second)
		f.is("the watch", seen(w), "closed")
		f.create("default/b")
		f.raw.fail(nil)
		time.Sleep(2 * time.Second)
		s := f.Snapshot()
		assert.True(t, s.Ready && s.Generation == 2 && s.Cache.ListResourceVersion == 3, "%+v", s)
		f.is("resuming from before", seen(f.watch("", everything(rv))), "ERROR 410 Expired, closed")
		again := f.watch("", everything("3"))
		f.create("default/c")
		f.is("resuming from the list", seen(again), "ADDED default/c 4")
	})
}

func TestAShortLossOfTheLeaderEndsNoWatch(t *testing.T) {
	run(t, nil, func(f *fixture) {
		w := f.watch("", everything(f.create("default/a")))
		f.etcd.FailWatches(rpctypes.ErrGRPCNoLeader.Error())
		f.create("default/b")
		time.Sleep(10 * time.Second)
		f.is("watch", seen(w), "ADDED default/b 3")
		assert.Equal(t, f.Snapshot().Generation, 1, "generation")
	})
}

// A watch that was accepted in one generation and is about to be registered in the next would miss what happened in
// between.
func TestAWatchThatMeetsANewGenerationEndsAtOnce(t *testing.T) {
	for name, interrupt := range map[string]func(f *fixture){
		"not ready":       func(f *fixture) { f.ready.setError(nil) },
		"next generation": func(f *fixture) { f.ready.setError(nil); f.ready.setReady() },
		"stopped":         func(f *fixture) { f.ready.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(f *fixture) {
				req, err := f.newWatchRequest(prefix, everything("0"))
				require.NoError(t, err)
				req.watcher = f.newWatcher(f.ctx, req)
				interrupt(f)
				f.is("watch", seen(f.startWatch(f.ctx, req)), "closed")
				assert.Equal(t, len(f.Snapshot().Watchers), 0, "watchers registered")
			})
		})
	}
}

func TestStoppingTheCacherEndsItsWatches(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		new(routine.Group).Go(context.Background(), "cacher.Run", func(context.Context) {
			defer close(ended)
			f.Run(ctx)
		})
		f.ctx = t.Context()
		require.NoError(t, f.Wait(t.Context()))
		blocked := f.stuck(f.create("default/a"))
		waiting := make(chan error, 1)
		new(routine.Group).Go(context.Background(), "test.reader", func(context.Context) {
			waiting <- f.store.GetList(t.Context(), prefix, everything("999"), newPodList())
		})
		synctest.Wait()
		start := time.Now()
		cancel()
		<-ended
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

func TestTheCacheMayBeFilledByAListInsteadOfAStream(t *testing.T) {
	list := func(c *Config) { c.UseWatchList = false }
	run(t, list, func(f *fixture) {
		w := f.watch("", everything(f.create("default/a")))
		f.create("default/b")
		f.is("watch", seen(w), "ADDED default/b 3")
	})
}

func TestACacherThatCannotBeConfiguredIsNotMade(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no prefix":    func(c *Config) { c.ResourcePrefix = "" },
		"slash":        func(c *Config) { c.ResourcePrefix = "/" },
		"no slash":     func(c *Config) { c.ResourcePrefix = "registry/pods" },
		"two triggers": func(c *Config) { withTrigger(c); c.Indexers["metadata.name"] = c.Indexers["spec.nodeName"] },
	} {
		config := Config{ResourcePrefix: prefix, Storage: &gatedStorage{}, Clock: nil}
		change(&config)
		_, err := New(config)
		assert.True(t, err != nil, "%s: accepted", name)
	}
}

// list lists through the delegator and returns "default/a 5" for each item, and the list's version.
func (f *fixture) list(key string, opts storage.ListOptions) (items []string, rv string) {
	f.t.Helper()
	out := &corev1.PodList{}
	require.NoError(f.t, f.store.GetList(f.ctx, prefix+key, opts, out), "list %s", key)
	for _, p := range out.Items {
		items = append(items, p.Namespace+"/"+p.Name+" "+p.ResourceVersion)
	}
	return items, out.ResourceVersion
}

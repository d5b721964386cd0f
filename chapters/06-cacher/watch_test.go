package cacher

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	cachewatcher "listwatch/chapters/05-cachewatcher"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

func TestInitialEventsOfTheFutureAreTooLargeAfterThreeSeconds(t *testing.T) {
	run(t, nil, func(f *fixture) {
		start := time.Now()
		w := f.watch("", watchList(everything("100")))
		assert.Equal(t, 3*time.Second, time.Since(start), "waited")
		f.is("watch", seen(w), "ERROR 504 Timeout, closed")
	})
}

func TestASelectorWithNilFieldsSelectsEverything(t *testing.T) {
	run(t, withTrigger, func(f *fixture) {
		w := f.watch("", storage.ListOptions{Recursive: true, ResourceVersion: "1"})
		f.create("default/a")
		f.is("watch", seen(w), "ADDED default/a 2")
	})
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	run(t, nil, func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		w := require.Value(f.store.Watch(ctx, prefix, everything("0")))(t)
		cancel()
		f.is("watch", seen(w), "closed")
	})
}

// TestTheCacherSaysWhenItHasEnded: after everything that it has started, watchers included.
func TestTheCacherSaysWhenItHasEnded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var group routine.Group
		group.Go(ctx, "cacher", f.Run)
		synctest.Wait()
		f.watch("", everything("0"))
		cancel()
		group.Wait()
		ends := map[probe.Point]uint64{}
		for r := range f.log.Between(0, f.log.Last()) {
			ends[r.Point] = r.Seq
		}
		assert.True(t, ends[probe.CacherStopped] > ends[probe.WatcherRemoved] && ends[probe.WatcherRemoved] > 0 &&
			ends[probe.CacherStopped] > ends[probe.CacherNotReady], "ends: %v", ends)
	})
}

func TestWatchersAreNumberedAndSpeakForThemselves(t *testing.T) {
	run(t, nil, func(f *fixture) {
		first, second := f.watch("", everything("0")), f.watch("", everything("0"))
		f.is("names", []string{probe.Of(first).ID(), probe.Of(second).ID()}, "w1, w2")
		first.Stop()
		synctest.Wait()
		s := f.Snapshot()
		assert.True(t, len(s.Watchers) == 1 && s.Watchers[0].ID == "w2" && s.Watchers[0].InputCap == 10, "%+v",
			s.Watchers)
	})
}

func TestAnEventFindsTheWatchersOfEachScopeOnce(t *testing.T) {
	scopes := []namespacedName{{"default", "a"}, {"default", ""}, {"", "a"}, {}, {"default", "b"}, {"other", ""},
		{"other", "a"}}
	for name, test := range map[string]struct {
		key        string
		namespaced bool
		want       []namespacedName
	}{
		"namespaced": {"/registry/pods/default/a", true, []namespacedName{{"default", "a"}, {"default", ""},
			{"", "a"}, {}}},
		"cluster-scoped": {"/registry/pods/a", false, []namespacedName{{"", "a"}, {}}},
		"without a name": {"/registry/pods/default/", true, []namespacedName{{"default", ""}, {}}},
		"without either": {"/registry/pods/", true, []namespacedName{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cacher{config: Config{ResourcePrefix: "/registry/pods", Namespaced: test.namespaced},
				watchers: newIndexedWatchers()}
			scopeOfWatcher := map[*cachewatcher.CacheWatcher]namespacedName{}
			for _, scope := range scopes {
				w := cachewatcher.New(cachewatcher.Config{})
				scopeOfWatcher[w] = scope
				c.watchers.addLocked(&watchRequest{watcher: w, scope: scope})
			}
			c.pickWatchersLocked(&watchcache.Event{Key: test.key})
			var got []namespacedName
			for _, w := range c.watchersBuffer {
				got = append(got, scopeOfWatcher[w])
			}
			assert.EqualSlices(t, test.want, got)
		})
	}
}

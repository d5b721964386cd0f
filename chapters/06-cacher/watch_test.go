package cacher

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

func TestASelectorWithNilFieldsSelectsEverything(t *testing.T) {
	run(t, withTrigger, func(f *fixture) {
		w := f.watch("", storage.ListOptions{Recursive: true, ResourceVersion: "1"})
		f.create("default/a")
		f.is("watch", seen(w), "ADDED default/a 2")
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

func TestAnObjectWithoutANamespaceIsFoundByItsName(t *testing.T) {
	assert.Equal(t, namespacedName{name: "a"}, scopeOf(&Config{ResourcePrefix: prefix}, prefix+"/a"))
}

func withBookmarks(opts storage.ListOptions) storage.ListOptions {
	opts.Predicate.AllowWatchBookmarks = true
	return opts
}

func TestAQuietWatcherIsSentABookmarkEveryMinute(t *testing.T) {
	run(t, nil, func(f *fixture) {
		rv := f.create("default/a")
		quiet := f.watch("/kube-system", withBookmarks(everything(rv)))
		without := f.watch("/kube-system", everything(rv))
		time.Sleep(57 * time.Second)
		f.is("after 57 s", seen(quiet), "")
		f.create("default/b")
		time.Sleep(5 * time.Second)
		f.is("after 62 s", seen(quiet), "BOOKMARK 3")
		f.update("default/b")
		time.Sleep(time.Minute + 2*time.Second)
		f.is("a minute later", seen(quiet), "BOOKMARK 4")
		time.Sleep(4*time.Minute + 8*time.Second)
		f.is("four quiet minutes later", seen(quiet), "BOOKMARK 4"+strings.Repeat(", BOOKMARK 4", 3))
		f.is("a watcher that did not ask", seen(without), "")
	})
}

// In this test only the test itself dispatches, so that a bookmark can come at the worst moment: when an event is
// in the cache, and still on its way.
func TestABookmarkCarriesOnlyWhatWasHandedOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		require.NoError(t, f.watchCache.Replace(nil, "5"))
		w := require.Value(f.Watch(t.Context(), prefix, withBookmarks(everything("5"))))(t)
		p := pod("default/a")
		p.ResourceVersion = "6"
		require.NoError(t, f.watchCache.Add(p))
		time.Sleep(2 * time.Minute)
		f.dispatchBookmark()
		f.is("6 waits in incoming", seen(w), "")
		f.receive(<-f.incoming)
		time.Sleep(2 * time.Minute)
		f.dispatchBookmark()
		f.is("6 was handed over", seen(w), "ADDED default/a 6, BOOKMARK 6")
		f.terminateAllWatchers()
		f.watcherRoutines.Wait()
	})
}

func TestStoppedWatchersAreDueNoBookmark(t *testing.T) {
	run(t, nil, func(f *fixture) {
		for range 50 {
			w := f.watch("", withBookmarks(everything("0")))
			w.Stop()
			seen(w)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		for _, r := range probetest.Records(f.log, probe.DispatchStarted) {
			t.Errorf("a bookmark is dispatched to %d watchers", r.Args[0])
		}
	})
}

package cacher

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

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

// The bookmark makes the difference between resuming and beginning from nothing.
func TestABookmarkKeepsAFilteredWatchAlive(t *testing.T) {
	small := func(c *Config) { c.RingCapacity = 4 }
	run(t, small, func(f *fixture) {
		rv := f.create("default/a")
		w := f.watch("", withBookmarks(selecting(rv, "app=none", "")))
		for range 20 {
			f.update("default/a")
			synctest.Wait()
		}
		time.Sleep(62 * time.Second)
		bookmark := seen(w)
		w.Stop()
		f.is("all it ever saw", bookmark, "BOOKMARK 22")
		f.is("without it", seen(f.watch("", selecting(rv, "app=none", ""))), "ERROR 410 Expired, closed")
		again := f.watch("", selecting(strings.TrimPrefix(bookmark[0], "BOOKMARK "), "app=none", ""))
		f.is("with it", seen(again), "")
	})
}

// deadlineContext tells of a deadline without enforcing it: time belongs to the server's clock.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) { return c.deadline, true }

func TestAWatcherIsSentABookmarkShortlyBeforeItsDeadline(t *testing.T) {
	run(t, nil, func(f *fixture) {
		rv := f.create("default/a")
		ctx := deadlineContext{f.ctx, time.Now().Add(10 * time.Second)}
		w := require.Value(f.store.Watch(ctx, prefix, withBookmarks(everything(rv))))(t)
		f.create("default/b")
		time.Sleep(7 * time.Second)
		f.is("early", seen(w), "ADDED default/b 3")
		time.Sleep(3 * time.Second)
		f.is("two seconds before the end, give or take one", seen(w), "BOOKMARK 3")
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

func TestABookmarkThatSaysNothingNewIsNotSent(t *testing.T) {
	run(t, nil, func(f *fixture) {
		w := f.watch("", withBookmarks(everything("0")))
		time.Sleep(10 * time.Minute)
		f.is("nothing has happened", seen(w), "")
		f.etcd.Put("/registry/nodes/n1", []byte("{}"))
		time.Sleep(20 * time.Minute) // etcd tells an idle watch where it is, every ten minutes
		f.is("something has, elsewhere", seen(w)[:1], "BOOKMARK 2")
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

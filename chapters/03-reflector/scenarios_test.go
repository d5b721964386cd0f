package reflector

import (
	"context"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/routine"
)

// running starts the reflector, waits until it is at rest, and returns a function that stops it and waits for its end.
func running(t *testing.T, r *Reflector) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group routine.Group
	group.Go(ctx, "reflector.Run", r.Run)
	synctest.Wait()
	return func() { cancel(); group.Wait() }
}

func wantLog(t *testing.T, what, got, want string) {
	t.Helper()
	assert.NoDiff(t, got, want, what)
}

func TestListThenWatchCarriesEveryEventIntoTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &record{}
		s.onList(listing(podList("5", pod("a", "3"), pod("b", "5"))))
		r := newTestReflector(s, store, nil)
		stop := running(t, r)
		defer stop()
		wantLog(t, "asked", s.log(), "0s list rv=0 limit=500\n0s watch rv=5")
		wantLog(t, "store", store.log(), "replace [a@3 b@5] at 5")

		w := s.last()
		w.send(watch.Added, pod("c", "6"))
		w.send(watch.Modified, pod("a", "7"))
		w.send(watch.Deleted, pod("b", "8"))
		synctest.Wait()
		wantLog(t, "store", store.log(), "add c@6; update a@7; delete b@8")
		assert.Equal(t, r.LastSyncResourceVersion(), "8", "LastSyncResourceVersion")
	})
}

func TestStreamedInitialStateIsInstalledAtOnceAndTheStreamGoesOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &curious{}
		r := newTestReflector(s, store, func(c *Config) { c.UseWatchList = true })
		stop := running(t, r)
		defer stop()
		w := s.last()
		w.send(watch.Added, pod("b", "5"))
		w.send(watch.Added, pod("a", "3"))
		synctest.Wait()
		wantLog(t, "store before the bookmark", store.log(), "")
		assert.Equal(t, r.LastSyncResourceVersion(), "", "LastSyncResourceVersion before the bookmark")
		w.result <- endOfInitialEvents("6")
		w.send(watch.Added, pod("c", "7"))
		synctest.Wait()
		wantLog(t, "store", store.log(), "replace [b@5 a@3] at 6; add c@7; rv 7")
		wantLog(t, "asked", s.log(), "0s watchlist rv=")
		assert.False(t, w.isStopped(), "the stream was stopped at the hand-over")
	})
}

package watchcache

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

func TestADeletedObjectCarriesTheVersionOfItsDeletionAndNobodyElsesCopyChanges(t *testing.T) {
	f := newFixture(t, 10)
	kept := pod("default/a", 5, "n1")
	f.list(5, kept)
	before := f.exact(5)
	f.must(f.Delete(pod("default/a", 9, "")))
	deleted := f.handled[0].PrevObject.(*corev1.Pod)
	f.is("deleted", deleted.ResourceVersion+" "+deleted.Spec.NodeName, "9 n1")
	f.is("the object itself", kept.ResourceVersion, "5")
	f.is("a list from before", names(before), "default/a 5")
}

func TestTheHandlerRunsAfterTheChangeAndWithoutTheLock(t *testing.T) {
	f := newFixture(t, 10)
	f.list(1)
	calls := 0
	f.config.EventHandler = func(event *Event) {
		calls++
		require.True(t, f.mu.TryLock(), "the handler is called under the lock")
		f.mu.Unlock()
		f.is("version in the handler", f.Snapshot().ResourceVersion, fmt.Sprint(event.ResourceVersion))
	}
	f.add("default/a", 2)
	f.UpdateResourceVersion("7")
	f.is("calls", calls, "2")
}

func TestABookmarkMovesTheVersionAndNeverBack(t *testing.T) {
	f := newFixture(t, 10)
	f.list(5)
	f.UpdateResourceVersion("8")
	f.UpdateResourceVersion("6")
	f.UpdateResourceVersion("not a number")
	f.is("version", f.Snapshot().ResourceVersion, "8")
	f.is("bookmarks handled", len(f.handled), "1")
	assert.NoError(t, assert.ErrorOf(f.since(8)), "watch from the bookmark")
}

func TestWhatIsNotAnObjectOfTheResourceIsRefusedAndChangesNothing(t *testing.T) {
	f := newFixture(t, 10)
	f.list(5, pod("default/a", 5, ""))
	for _, err := range []error{
		f.Add("a string"), f.Add(&corev1.Node{}), f.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "x"}}),
		f.Replace([]any{"a string"}, "6"), f.Replace([]any{&corev1.Node{}}, "6"), f.Replace(nil, "x"),
	} {
		assert.True(t, err != nil, "accepted")
	}
	f.is("version", f.Snapshot().ResourceVersion, "5")
	f.is("handled", len(f.handled), "0")
	f.is("content", names(f.latestList()), "default/a 5")
}

func TestReplaceForgetsTheHistoryAndTellsNobody(t *testing.T) {
	f := newFixture(t, 10)
	replaced := uint64(0)
	f.config.OnReplace = func(rv uint64) {
		replaced = rv
		assert.False(t, f.mu.TryRLock(), "OnReplace is called without the lock")
	}
	f.list(5, pod("default/a", 3, ""), pod("default/b", 4, ""))
	f.update("default/a", 6)
	before := len(f.handled)
	f.list(9, pod("default/c", 8, ""))
	f.is("replaced", replaced, "9")
	f.is("events", len(f.handled)-before, "0")
	f.is("list", names(f.latestList()), "default/c 8")
	s := f.Snapshot()
	f.is("ring", s.End-s.Start, "0")
	f.is("version", s.ResourceVersion, "9")
	f.is("snapshots", s.Snapshots, "1")
}

// A reader that holds the lock must never find ring, version and store disagreeing.
func TestRingVersionAndStoreChangeTogether(t *testing.T) {
	f := newFixture(t, 8)
	f.config.EventHandler = func(*Event) {}
	f.list(1)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f.checkConsistency()
				}
			}
		})
	}
	for rv := uint64(2); rv < 5000; rv++ {
		f.update("default/a", rv)
	}
	close(done)
	readers.Wait()
}

func (f *fixture) checkConsistency() {
	f.mu.RLock()
	defer f.mu.RUnlock()
	rv := f.resourceVersion
	if f.history.endIndex > f.history.startIndex {
		newest := f.history.cache[(f.history.endIndex-1)%len(f.history.cache)]
		element := f.store.state.getByKey("/registry/pods/default/a")
		assert.True(f.t, newest.ResourceVersion == rv && element.Object.(*corev1.Pod).ResourceVersion == fmt.Sprint(rv),
			"version %d, ring %d, store %s", rv, newest.ResourceVersion, element.Object.(*corev1.Pod).ResourceVersion)
		oldest := f.snapshots.snapshots[0].resourceVersion
		assert.True(f.t, !f.history.isFullLocked() || oldest >= f.history.oldestLocked(),
			"snapshot %d is older than the ring's first event %d", oldest, f.history.oldestLocked())
	}
}

func (f *fixture) exact(rv uint64) List {
	f.t.Helper()
	list, err := f.GetList(f.t.Context(), "/registry/pods/", storage.ListOptions{
		ResourceVersion: fmt.Sprint(rv), ResourceVersionMatch: metav1.ResourceVersionMatchExact, Recursive: true,
	})
	f.must(err)
	return list
}

func (f *fixture) latestList() List {
	f.t.Helper()
	list, err := f.GetList(f.t.Context(), "/registry/pods/", storage.ListOptions{ResourceVersion: "0", Recursive: true})
	f.must(err)
	return list
}

// running calls body in a bubble in which the cache runs.
func running(t *testing.T, body func(f *fixture, stop func())) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, 10)
		f.list(5, pod("default/a", 5, ""))
		stop := bubble.Go(t, "watchCache.Run", f.Run)
		defer stop()
		synctest.Wait()
		body(f, stop)
	})
}

// reader waits for a version, and says how that ended.
func (f *fixture) reader(rv uint64) <-chan error {
	got := make(chan error, 1)
	new(routine.Group).Go(f.t.Context(), "reader", func(ctx context.Context) { got <- f.WaitUntilFresh(ctx, root, rv) })
	return got
}

// inASecond moves the version when a second is nearly over.
func (f *fixture) inASecond(rv string) {
	time.AfterFunc(time.Second-time.Millisecond, func() { f.UpdateResourceVersion(rv) })
}

func TestAReaderWaitsForAVersionAndIsWokenByIt(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		start := time.Now()
		got := f.reader(7)
		time.Sleep(50 * time.Millisecond)
		f.is("waiting", f.Snapshot().Waiting, "1")
		f.add("default/b", 6)
		synctest.Wait()
		f.is("still waiting", f.Snapshot().Waiting, "1")
		f.UpdateResourceVersion("8")
		f.must(<-got)
		f.is("waited", time.Since(start), "50ms")
		f.is("measured", f.waits.seconds, "[0.05]")
		f.is("waiting", f.Snapshot().Waiting, "0")

		start = time.Now()
		got = f.reader(9)
		time.Sleep(30 * time.Millisecond)
		f.add("default/c", 9)
		f.must(<-got)
		f.is("waited for an event", time.Since(start), "30ms")
	})
}

// A clock that stands, as in a world that is held, keeps no reader waiting.
func TestAVersionThatDoesNotComeIsTooLargeAfterThreeSeconds(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		f.config.Clock = clocktesting.NewFakeClock(time.Now()) // the world is held; Patience is what it was
		start := time.Now()
		err := f.WaitUntilFresh(f.t.Context(), root, 100)
		f.is("waited", time.Since(start), "3s")
		assert.True(f.t, f.progress.Load() != 0, "the storage was not asked for progress")
		assert.True(f.t, apierrors.IsTimeout(err) && apierrors.HasStatusCause(err,
			metav1.CauseTypeResourceVersionTooLarge), "got %v", err)
		seconds, ok := apierrors.SuggestsClientDelay(err)
		assert.True(f.t, ok && seconds == 1, "retry after %d, %v", seconds, ok)
	})
}

func TestProgressIsAskedForOnlyWhileSomebodyWaits(t *testing.T) {
	running(t, func(f *fixture, _ func()) {
		time.Sleep(time.Hour)
		f.is("requests without readers", f.progress.Load(), "0")
		f.inASecond("9")
		f.must(f.WaitUntilFresh(f.t.Context(), root, 9))
		f.is("requests in a second", f.progress.Load(), "10")
		time.Sleep(time.Hour)
		f.is("requests afterwards", f.progress.Load(), "10")
	})
}

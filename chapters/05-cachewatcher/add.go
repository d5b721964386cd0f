package cachewatcher

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"

	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/observe/probe"
)

// NonblockingAdd hands event to the watcher if it has room, and reports whether it had. A bookmark that comes too early
// for the watcher is refused as well. Only the dispatcher calls it, and only while the watcher cannot be stopped.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).nonblockingAdd
func (w *CacheWatcher) NonblockingAdd(event *watchcache.Event) bool {
	if event.Type == watch.Bookmark && event.ResourceVersion < w.bookmarkAfterResourceVersion {
		return false
	}
	select {
	case w.input <- event:
		w.added(event)
		return true
	default:
		return false
	}
}

// Add waits until the watcher takes event or a value comes from expired; Add uses that value up. If expired is nil,
// there is no time left to wait. If the watcher does not take the event it is closed, at the end of the dispatch, and
// Add returns false. Only the dispatcher calls it, never with a bookmark: they are worth no waiting.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).add
func (w *CacheWatcher) Add(event *watchcache.Event, expired <-chan time.Time) bool {
	if w.NonblockingAdd(event) {
		return true
	}
	if expired == nil {
		w.forceClose(event)
		return false
	}
	w.probe.Event(probe.InputBlocked, string(event.Type), event.Key, event.ResourceVersion)
	select {
	case w.input <- event:
		w.added(event)
		return true
	case <-expired:
		w.forceClose(event)
		return false
	}
}

func (w *CacheWatcher) added(event *watchcache.Event) {
	w.probe.Event(probe.InputSent, string(event.Type), event.Key, event.ResourceVersion, len(w.input), cap(w.input))
	w.markBookmarkReceived(event)
}

// forceClose gives up on a watcher that does not keep up, and has no room for event. Its client
// sees the stream end and resumes from the last version it has. That is progress only if it has
// one: a client that is still waiting for the bookmark which ends its initial events would have
// to begin from nothing, so a watcher that has this bookmark in its input delivers it first.
func (w *CacheWatcher) forceClose(event *watchcache.Event) {
	w.probe.At(probe.WatcherForced, event.Key, event.ResourceVersion)
	graceful := w.bookmarkState() == bookmarkReceived
	w.forgetter.Forget(graceful)
}

// Stop ends the watch: the client is gone, or has had enough. Any goroutine that does not hold the Cacher's lock may
// call it, more than once. It does not wait for the end of a dispatch, nor for ResultChan to close.
func (w *CacheWatcher) Stop() { w.forgetter.Forget(false) }

// SetDrainLocked says whether, when the watcher is stopped, what it has been given is to be
// delivered first. A stop that does not drain is final. One that drains may come after it, when
// a client leaves while the dispatcher waits for its watcher; then no client reads what a drain
// would deliver. The caller holds the Cacher's lock.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).setDrainInputBufferLocked
// Differs: upstream obeys the last call. A watcher whose client has left is then drained all
// the same, and its goroutine never ends: kubernetes#137631 reports the symptom.
func (w *CacheWatcher) SetDrainLocked(drain bool) {
	w.dropInputBuffer = w.dropInputBuffer || !drain
}

// StoppedLocked reports whether the watcher has been stopped. The caller holds the Cacher's lock.
func (w *CacheWatcher) StoppedLocked() bool { return w.stopped }

// StopLocked stops the watcher. The caller holds the Cacher's lock and knows that the
// dispatcher is not sending to it: a send on a closed channel panics. It may be called more
// than once.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).stopLocked
func (w *CacheWatcher) StopLocked() {
	if !w.stopped {
		w.stopped = true
		close(w.input)
	}
	// Also the second time: a watcher that was being drained may be stopped for good now,
	// because its client has left. Its goroutine may be stuck on a full result that no client
	// reads any more.
	if w.dropInputBuffer && !w.doneClosed {
		w.doneClosed = true
		close(w.done)
	}
}

package cachewatcher

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"

	watchcache "listwatch/chapters/04-watchcache"
)

// bookmarkState is how far a watcher is with the one bookmark that ends its initial events:
//
//	waiting ──a bookmark of the right version enters input──► received
//	received ──one enters result──► sent
//
// A watcher that did not ask for it begins at sent. The prepared bookmark at the end of an
// interval leads to sent from either state.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: cacheWatcherWaitingForBookmark
type bookmarkState int32

const (
	bookmarkWaiting bookmarkState = iota
	bookmarkReceived
	bookmarkSent
)

var bookmarkStateNames = map[bookmarkState]string{
	bookmarkWaiting: "waiting", bookmarkReceived: "received", bookmarkSent: "sent",
}

// preDeadline is how long before its end a watch is sent a last bookmark. Upstream's.
const preDeadline = 2 * time.Second

func (w *CacheWatcher) bookmarkState() bookmarkState { return bookmarkState(w.state.Load()) }

func (w *CacheWatcher) setBookmarkAfter(rv uint64) {
	w.bookmarkAfterResourceVersion = rv
	if rv == 0 {
		w.state.Store(int32(bookmarkSent))
	}
}

// markBookmarkReceived is called by the dispatcher. [CacheWatcher.NonblockingAdd] refuses bookmarks that are too early,
// so the first one that gets in is the one waited for. The watcher may have sent it before this line runs; then the
// state stays as it is.
func (w *CacheWatcher) markBookmarkReceived(event *watchcache.Event) {
	if event.Type == watch.Bookmark {
		w.state.CompareAndSwap(int32(bookmarkWaiting), int32(bookmarkReceived))
	}
}

func (w *CacheWatcher) markBookmarkSent(event *watchcache.Event) {
	if event.Type == watch.Bookmark {
		w.state.Store(int32(bookmarkSent))
	}
}

// NextBookmarkTime returns when the watcher should be sent its next bookmark, or false if never
// again. A watcher that waits for the end of its initial events should be tried at every
// occasion. Otherwise a bookmark is due after the duration every, and shortly before the
// deadline, so that a client whose time is up resumes from a recent version.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).nextBookmarkTime
func (w *CacheWatcher) NextBookmarkTime(now time.Time, every time.Duration) (time.Time, bool) {
	if w.bookmarkState() == bookmarkWaiting {
		return now, true
	}
	next := now.Add(every)
	if w.deadline.IsZero() {
		return next, true
	}
	if last := w.deadline.Add(-preDeadline); last.Before(next) {
		next = last
	}
	return next, !next.Before(now)
}

package cachewatcher

import (
	"time"

	"k8s.io/utils/clock"

	watchcache "listwatch/chapters/04-watchcache"
)

// BookmarkTimeBuckets says which watchers are due a bookmark, to the second: bucket n holds
// those whose time lies in [n, n+1) seconds after they were made. A thousand watchers cost one
// look a second instead of a thousand timers. A watcher enters when it is registered, and again
// after each bookmark that the dispatcher has offered it, taken or not. A stopped one stays in
// its bucket until that is emptied.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: watcherBookmarkTimeBuckets
type BookmarkTimeBuckets struct {
	// Set by NewBookmarkTimeBuckets, never changed.
	clock      clock.PassiveClock
	createTime time.Time

	// Guarded by the Cacher's lock.
	buckets       map[int64][]*CacheWatcher
	startBucketID int64 // buckets before this one have been emptied
}

// NewBookmarkTimeBuckets returns buckets that are empty.
func NewBookmarkTimeBuckets(clk clock.PassiveClock) *BookmarkTimeBuckets {
	return &BookmarkTimeBuckets{
		clock:      clk,
		createTime: clk.Now(),
		buckets:    map[int64][]*CacheWatcher{},
	}
}

// AddLocked puts watcher where its next bookmark is due, or nowhere if none will be. One that is due already goes into
// the next bucket to be emptied. The caller holds the Cacher's lock.
func (t *BookmarkTimeBuckets) AddLocked(watcher *CacheWatcher) {
	next, ok := watcher.NextBookmarkTime(t.clock.Now(), watchcache.BookmarkFrequency)
	if !ok {
		return
	}
	id := max(t.bucketOf(next), t.startBucketID)
	t.buckets[id] = append(t.buckets[id], watcher)
}

func (t *BookmarkTimeBuckets) bucketOf(at time.Time) int64 {
	return int64(at.Sub(t.createTime) / time.Second)
}

// PopExpiredLocked empties every bucket up to that of this second. The caller holds the Cacher's lock.
func (t *BookmarkTimeBuckets) PopExpiredLocked() []*CacheWatcher {
	var expired []*CacheWatcher
	for current := t.bucketOf(t.clock.Now()); t.startBucketID <= current; t.startBucketID++ {
		expired = append(expired, t.buckets[t.startBucketID]...)
		delete(t.buckets, t.startBucketID)
	}
	return expired
}

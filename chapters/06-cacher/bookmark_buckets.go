package cacher

import (
	"time"

	"k8s.io/utils/clock"

	watchcache "listwatch/chapters/04-watchcache"
	cachewatcher "listwatch/chapters/05-cachewatcher"
)

// watcherBookmarkTimeBuckets says which watchers are due a bookmark, to the second: bucket n holds those whose time lies
// in [n, n+1) seconds after the cacher was made. A thousand watchers cost one look a second instead of a thousand
// timers. A watcher that has been stopped stays in its bucket until that is emptied.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: watcherBookmarkTimeBuckets
type watcherBookmarkTimeBuckets struct {
	// Set by newWatcherBookmarkTimeBuckets, never changed.
	clock      clock.PassiveClock
	createTime time.Time

	// Guarded by Cacher.mu.
	buckets       map[int64][]*cachewatcher.CacheWatcher
	startBucketID int64 // buckets before this one have been emptied
}

func newWatcherBookmarkTimeBuckets(clk clock.PassiveClock) *watcherBookmarkTimeBuckets {
	return &watcherBookmarkTimeBuckets{
		clock:      clk,
		createTime: clk.Now(),
		buckets:    map[int64][]*cachewatcher.CacheWatcher{},
	}
}

// addLocked puts watcher where its next bookmark is due, or nowhere if none will be. One that is due already goes into
// the next bucket to be emptied.
func (t *watcherBookmarkTimeBuckets) addLocked(watcher *cachewatcher.CacheWatcher) {
	next, ok := watcher.NextBookmarkTime(t.clock.Now(), watchcache.BookmarkFrequency)
	if !ok {
		return
	}
	id := max(t.bucketOf(next), t.startBucketID)
	t.buckets[id] = append(t.buckets[id], watcher)
}

func (t *watcherBookmarkTimeBuckets) bucketOf(at time.Time) int64 {
	return int64(at.Sub(t.createTime) / time.Second)
}

// popExpiredLocked empties every bucket up to that of this second.
func (t *watcherBookmarkTimeBuckets) popExpiredLocked() []*cachewatcher.CacheWatcher {
	var expired []*cachewatcher.CacheWatcher
	for current := t.bucketOf(t.clock.Now()); t.startBucketID <= current; t.startBucketID++ {
		expired = append(expired, t.buckets[t.startBucketID]...)
		delete(t.buckets, t.startBucketID)
	}
	return expired
}

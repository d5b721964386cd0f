// Package watchcache keeps one resource in memory twice: as the objects of now, and as the events that led to them. The
// objects answer LIST and GET; because of the events a watch can begin in the past.
//
//	           Add / Update / Delete / UpdateResourceVersion        Replace
//	                         │ one writer: the reflector               │
//	                         ▼                                         ▼
//	┌──── mu ────────────────────────────────────────────────────────────────────────┐
//	│  history: the ring            resourceVersion      store: btree + indices      │
//	│  [startIndex, endIndex)             │              │                           │
//	│                                     │              └─ snapshots: one clone per │
//	│                                     │                 resource version         │
//	└──────┬──────────────────────────────┼────────────────────────┬─────────────────┘
//	       ▼ Interval: replay             ▼ cond: freshness        ▼ lists and gets
//
// # Contract
//
// There is at most one call of Add, Update, Delete, Replace and UpdateResourceVersion in flight at any time. Everything
// else may be called from any goroutine. Events, elements and the objects in them are shared by all readers
// and never changed once they are in the cache.
//
// # Locks
//
// WatchCache.mu guards ring, resource version, store and the list of snapshots together, so that a reader never sees
// one without the others. This lock is the first in the order of the server half: watchCache, then Cacher, then ready.
// While mu is held for writing, Config.OnReplace may be called, which takes the ready lock. Config.EventHandler is
// called without mu, because that function blocks.
//
// # Goroutines
//
// [WatchCache.Run] starts two, both idle unless a reader waits for a resource version that has not arrived:
// watchCache.requestProgress asks the storage for its progress, watchCache.wakeReaders lets waiting readers look at the
// clock. Each has one channel, wake, on which it learns that a reader has come.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_interval.go
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store
// Upstream: k8s.io/apiserver/pkg/storage/cacher/progress
package watchcache

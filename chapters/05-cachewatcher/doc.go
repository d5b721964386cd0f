// Package cachewatcher turns the one stream of events into one client's view of it.
//
//	Cacher.dispatchEvents                    one goroutine per watcher                WatchServer
//	─────────────────────                    ─────────────────────────                ───────────
//	                                 Interval: what came before
//	                                            │ first
//	NonblockingAdd / Add ──► input ──► process ─┴─► filter, convert ──► result ──► ResultChan
//	                         10…1000                                    as many
//	StopLocked ─────────► close(input), close(done)          close(result), last of all
//
// # Contract
//
// A watcher sees a prefix, without gaps, of: the events of its interval, then every live event newer than those, each
// only if the object matched before or after the change. The type that the watcher sees depends only on these matches.
//
// # Locks
//
// A watcher has no mutex. Methods that end in Locked expect the Cacher's lock, which is held while watchers are
// registered and stopped. The bookmark state is an atomic, because dispatcher and watcher both move it.
// cachingObject.mu is a leaf.
//
// # Goroutines and channels
//
// Each watcher has one goroutine, cacheWatcher.processInterval, started by the Cacher. input is sent to by the
// dispatcher, one goroutine, and closed under the Cacher's lock at a moment when the dispatcher cannot be sending;
// result is sent to and closed by the watcher's goroutine; done is only ever closed.
//
// This package also has what the dispatcher uses for all watchers alike: [ShareEncodings] wraps an event so that its
// object is encoded once, and [BookmarkTimeBuckets] says which watcher is due for a bookmark.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go
package cachewatcher

// Package cacher fans one stream of events out to any number of watchers, without letting a slow one hold up the rest,
// and answers from memory all reads that it can.
//
//	storage.Interface (etcd3)
//	      │ list, watch
//	  reflector ──► watchCache ──► incoming(100) ──► dispatchEvents ─┬─► w1.input ──► w1
//	   one writer   ring, store     processEvent      one goroutine  ├─► w2.input ──► w2
//	                    │                                            └─► …
//	                    └──► GetList, Get, and where a new Watch begins
//
// # Contract
//
// [Cacher.Watch] hands out every event once: choosing where a watch begins and registering it are one step with respect
// to the cache. While the cache has no source, watches and most lists are refused with 429. When the source is lost,
// all watchers are ended, and none of them survives into the next generation. [CacheDelegator] is the
// [storage.Interface] that clients see: it sends writes, and the reads that the cache cannot answer, to the storage.
//
// # Locks
//
// The order is watchCache, then Cacher.mu, then ready.mu. [Cacher.Watch] takes the watchCache's lock for reading and
// Cacher.mu inside it; the watchCache's writer takes the watchCache's lock and, through onReplace, ready.mu. No holder
// of Cacher.mu takes the watchCache's lock, and no holder of any lock sends on a channel. timeBudget.mu is a leaf.
//
// # Goroutines and channels
//
// [Cacher.Run] starts cacher.startCaching, which runs the reflector and therefore is the one writer into the watchCache
// and the one sender on incoming, and closes incoming; cacher.dispatchEvents, the one receiver from incoming and the
// one sender on every watcher's input; cacher.compact, which tells the watchCache what the storage has forgotten; and
// watchCache.Run with its two goroutines. Each watcher's goroutine, cacheWatcher.processInterval, is started when the
// watcher is registered. Run returns when all of them have ended.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go
package cacher

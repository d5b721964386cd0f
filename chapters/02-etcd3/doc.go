// Package etcd3 keeps API objects in etcd: the only writer and the source of truth. It turns API verbs into optimistic
// transactions, lists into reads pinned to one revision, and etcd's watch into API events.
//
// The contract is [storage.Interface]. In addition:
//
//   - An object's resource version is the etcd revision that last wrote the object; a list's is the revision at which
//     the list was read. The version is never stored in the object: etcd returns it with the bytes.
//   - A watch delivers changes in revision order, each once, until the watch ends. An initial state comes before the
//     changes, all of one revision, in key order. A watch ends when its context does, or after one ERROR event. Its
//     channel is closed exactly once, after every goroutine of the watch has ended.
//   - Calls last as long as their context. This package sets no deadline. It reads a clock for one thing: the time in
//     which objects with a time to live share a lease. etcd ends the lease by its own clock.
//
// # Goroutines
//
// A [Store] has no goroutine. Each watch has four: watchChan.run, .startWatching, .scheduleEventProcessing and
// .collectEventProcessing, and one for each event that is decoded, watchChan.processEvent: ten at most. The
// reconstruction ([WatcherEtcd2]) has three: etcdWatcher.run, .etcdWatch and .translate.
//
// # Locks
//
// Store.mu guards the set of watches. It is innermost and held for a few instructions. No lock is held while etcd is
// called, except the lock of the leases while etcd grants one: writers that come meanwhile share that lease.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3
package etcd3

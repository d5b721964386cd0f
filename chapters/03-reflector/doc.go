// Package reflector keeps a store in step with a server: it gets a consistent start, follows the stream of changes,
// and knows for every failure whether to wait, to watch again from where it was, or to list again.
//
// The same type serves both halves of the program. In the server half the [ListerWatcher] reads etcd and the [Store]
// is the watch cache; in the client half the ListerWatcher speaks HTTP and the Store is a queue of deltas.
//
//   - reflector.go: [Reflector], its configuration, the outer loop, and which resource version is asked for.
//   - list.go, pager.go: the older way to a consistent start, LIST in pages.
//   - watchlist.go: the newer way, one stream that begins with the state and goes on with the changes.
//   - watch.go, handle.go: following the stream; what each kind of end means.
//   - resync.go: telling the store, from time to time, to look at everything it has again.
//   - backoff.go, retry.go, errors.go: how long to wait, how long to insist, which error is which.
//   - store.go: the interfaces a store implements, and its keys.
//
// # Goroutines
//
// [Reflector.Run] works in the caller's goroutine: it alone calls the ListerWatcher and the Store's Add, Update,
// Delete, Replace and Bookmark. While a watch is open there is one more, reflector.startResync, if a resync period
// is set: it alone calls the Store's Resync, and it has ended when Run returns. A Store must therefore allow Resync
// at the same time as another call; no two others overlap.
//
// # Locks
//
// One: Reflector.mu guards what other goroutines may ask about. It is held for a few assignments, never while the
// Store or the ListerWatcher is called.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go
package reflector

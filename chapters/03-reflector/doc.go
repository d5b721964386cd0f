// Package reflector keeps a store in step with a server: it gets a consistent start, follows the stream of changes,
// and knows for every failure whether to wait, to watch again from where it was, or to list again.
//
// The same type serves both halves of the program. In the server half the [ListerWatcher] reads etcd and the [Store]
// is the watch cache; in the client half the ListerWatcher speaks HTTP and the Store is a queue of deltas.
//
// # Goroutines
//
// [Reflector.Run] works in the caller's goroutine: this goroutine alone calls the ListerWatcher and the Store's Add,
// Update, Delete, Replace and Bookmark. While a watch is open there is one more, reflector.startResync, if a resync
// period is set: this one alone calls the Store's Resync, and it has ended when Run returns. A Store must therefore
// allow Resync at the same time as another call; no two others overlap.
//
// # Locks
//
// One: Reflector.mu guards the fields that other goroutines may read. It is held for a few assignments, never while the
// Store or the ListerWatcher is called.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go
package reflector

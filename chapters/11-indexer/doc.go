// Package indexer is the local copy of what the server holds: the store that handlers and listers read instead of
// asking the server.
//
// # Concurrency
//
// There is no goroutine in this package. One RWMutex, Indexer.mu, guards objects and indices together, so that no
// reader sees one without the other. The lock is innermost: nothing is called under it but index functions, and those
// must not call the indexer. Everything may be called from anywhere; the objects that come out are shared, and must not
// be written to.
//
// Upstream: k8s.io/client-go/tools/cache
// Upstream: k8s.io/client-go/tools/cache/store.go
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go
package indexer

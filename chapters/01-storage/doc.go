// Package storage is the vocabulary that every station of the server half shares: what a key is, what a resource
// version is, what a reader may ask for, which part of it a watcher wants, and how all of that can go wrong.
//
// There is no goroutine and no lock in this package.
//
//   - interfaces.go: [Interface], the one contract that both the etcd3 store and the cache in front of it fulfil.
//   - versioner.go: [APIObjectVersioner], the only place where a resource version is a number and a string at once.
//   - predicate.go: [SelectionPredicate], selectors as a question about one object.
//   - keys.go: storage keys, and why "/pods" must not match "/podsecurity".
//   - options.go: what a list or watch asks for, as what has to be read.
//   - continue.go: the token that carries a paged list from one request to the next.
//   - errors.go: errors as storage sees them, and the status a client gets for each.
//
// Upstream: k8s.io/apiserver/pkg/storage
package storage

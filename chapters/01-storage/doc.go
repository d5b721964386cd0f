// Package storage is the vocabulary that every station of the server half shares: keys, resource versions, the options
// of a reader, the selectors of a watcher, and the errors of all these.
//
// There is no goroutine and no lock in this package.
//
// Upstream: k8s.io/apiserver/pkg/storage
package storage

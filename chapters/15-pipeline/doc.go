// Package pipeline wires every station: what each is made of, what starts it, and what stops it. Besides that it
// creates the system's namespaces; everything else happened in an earlier chapter.
//
//   - stack.go: what one kind is made of: an etcd3 store, a Cacher, a delegator and a registry store.
//   - server.go: [Server], the server half: a stack for each kind; before them all the handlers.
//   - system.go: what is done before the first client comes.
//   - client.go: [Client], the client half: a factory with one shared informer, the toy controllers with watches of
//     their own.
//   - switches.go: what both halves can do as they did before.
//   - pipeline.go: [Pipeline], both, and the order of their beginning and end.
//
// What is done to a running pipeline, so that something can be seen, is no part of it: internal/play/sandbox builds on
// this package and is given the informer, the caches and the HTTP client from outside.
//
// # Goroutines and shutdown
//
// Constructors start nothing. [Pipeline.Run] returns when everything it started has ended, in this order: the
// controllers and the informer, then whatever serves HTTP, then the caches. etcd belongs to the caller that made the
// client and outlives all of them.
//
// Upstream: k8s.io/apiserver/pkg/server/genericapiserver.go
package pipeline

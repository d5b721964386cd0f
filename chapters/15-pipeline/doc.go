// Package pipeline wires every station: what each is made of, what starts it, and what stops it. Besides that it
// creates the system's namespaces; everything else happened in an earlier chapter.
//
// Actions on a running pipeline, for viewers, are not here: internal/play/sandbox builds on this package, and gets the
// informer, the caches and the HTTP client from its caller.
//
// # Goroutines and shutdown
//
// Constructors start nothing. [Pipeline.Run] returns when everything it started has ended, in this order: the
// controllers and the informer, then the HTTP server, then the caches. etcd belongs to the caller that made the client
// and outlives all of them.
//
// Upstream: k8s.io/apiserver/pkg/server/genericapiserver.go
package pipeline

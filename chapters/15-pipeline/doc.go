// Package pipeline wires every station: who is made of what, who starts whom, who stops whom. Nothing happens here that
// did not happen in an earlier chapter.
//
//   - server.go: [Server], the server half: per resource an etcd3 store, a Cacher and a registry store; before them all
//     the handlers.
//   - system.go: the namespaces that have to be there before anybody comes.
//   - client.go: [Client], the client half: one shared informer and its handlers, the toy controllers with watches of their own.
//   - pipeline.go: [Pipeline], both, and the order of their beginning and end.
//   - watchers.go: [Watchers], watches that somebody opens just to look; socket.go: those over a websocket.
//   - demo.go: [Demo], gentle traffic.
//
// # Goroutines and shutdown
//
// Constructors start nothing. [Pipeline.Run] returns when everything it started has ended, in this order: the
// controllers and the informer, then whatever serves HTTP, then the caches. etcd belongs to whoever made the client and
// outlives all of them.
//
// Upstream: k8s.io/apiserver/pkg/server/genericapiserver.go
package pipeline

// Package informer puts the client half together: one reflector and one local store per type, any number of handlers,
// and the promise that the store is never behind what a handler is told, unless etcd is restored.
//
// # Goroutines
//
// [SharedIndexInformer.Run] processes the queue in the caller's goroutine and starts: the reflector (reflector.Run),
// the goroutine that closes the queue when ctx is done (controller.closeQueue), and three for each handler (chapter
// 12). Run returns when all have ended. Handlers end strictly after the controller: no goroutine may send to a listener
// that is gone.
//
// # Locks, in the order in which they are taken
//
//	startedMu    started, stopped and what must not change after; one AddEventHandler at a time
//	deltasMu     upstream's blockDeltas: while it is held, the store does not change and nothing is distributed
//	(chapter 12) the listeners
//	(chapter 11) the store
//
// The queue's lock (chapter 10) comes before deltasMu if the queue holds it during processing, and nothing takes it
// while holding any of these.
//
// Upstream: k8s.io/client-go/tools/cache
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go
// Upstream: k8s.io/client-go/tools/cache/controller.go
// Upstream: k8s.io/client-go/informers/factory.go
package informer

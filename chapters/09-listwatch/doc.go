// Package listwatch is HTTP as the second [reflector.ListerWatcher]: a client that asks the API server for lists and
// watches, and that turns the bytes of a watch back into events.
//
// # Goroutines
//
// One per open watch, StreamWatcher.receive. It ends when the stream does, or with [StreamWatcher.Stop], which waits
// for it. Everything else happens in the caller's goroutine.
//
// # Locks
//
// None but the limiter's.
//
// # Channels
//
// One, [StreamWatcher.ResultChan]: receive sends on it and closes it, and it is unbuffered. A consumer that does not
// receive stops the goroutine. Then the connection is not read, its buffers fill, and the server cannot write:
// backpressure all the way to the watcher's queues in the server.
//
// Upstream: k8s.io/client-go/rest
// Upstream: k8s.io/client-go/tools/cache/listwatch.go
// Upstream: k8s.io/apimachinery/pkg/watch/streamwatcher.go
package listwatch

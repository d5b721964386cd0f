// Package listwatch is HTTP as the second [reflector.ListerWatcher]: a client that asks the API server for lists and
// watches, and that turns the bytes of a watch back into events.
//
//   - client.go: [RESTClient], what all requests have in common.
//   - request.go: [Request], one request under construction, and its two ends, Do and Watch.
//   - with_retry.go: which answers are worth another attempt, and after how long; the client's own limit.
//   - result.go: [Result], a complete answer, and how errors are read.
//   - listwatch.go: [ListWatch], a resource and a namespace as a ListerWatcher.
//   - streamwatcher.go: [StreamWatcher], a stream as a watch.Interface.
//   - decoder.go: [Decoder], from bytes to frames to events.
//
// # Goroutines
//
// One per open watch, StreamWatcher.receive. It ends when the stream does, or with [StreamWatcher.Stop], which waits
// for it. Everything else happens in the caller's goroutine.
//
// # Locks
//
// None but that of the limiter.
//
// # Channels
//
// One, [StreamWatcher.ResultChan]: sent and closed by receive, unbuffered. A consumer that does not receive stops the
// goroutine, so the connection is not read, so its buffers fill, so the server cannot write: backpressure all the way
// to the watcher's queues in the server.
//
// Upstream: k8s.io/client-go/rest
// Upstream: k8s.io/client-go/tools/cache/listwatch.go
// Upstream: k8s.io/apimachinery/pkg/watch/streamwatcher.go
package listwatch

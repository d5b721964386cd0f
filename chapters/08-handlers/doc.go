// Package handlers is the HTTP surface of the API server: from a request line to a call of the registry, and from what
// comes back to bytes.
//
//   - installer.go: a table of all routes, found by asking each storage what it can do; rest.go: what can be asked.
//   - handlers.go: [New], all routes in one handler; chain.go: what happens to every request on its way in and out.
//   - get.go: one object, a list, or a watch, which share a route; watch.go: [WatchServer], the loop behind every
//     open stream; watch_writer.go: where it goes; watch_encoder.go: one event, one frame.
//   - create.go, update.go, delete.go: the writing verbs; decode.go: their options.
//   - response.go: how an answer is written; errors.go: everything that goes wrong is a Status.
//   - request_deadline.go: how a request ends that takes too long; wsstream.go: a watch over a websocket.
//
// Media types, bodies, tables' objects and compression are in internal/kube/negotiation. What kubectl needs besides,
// from patches to discovery, is in internal/server/apiserver, which plugs into [Config].
//
// # Goroutines
//
// A request runs in the goroutine that net/http gives it; a watch stays in it until the stream ends. Beside it runs
// "handlers.deadline", which ends the request when its time is over; it is gone when the request is. A websocket has a
// goroutine that reads from it.
//
// # Contract
//
// Every answer under /api is a Kubernetes object, every failure a Status with code, reason and, where it helps, causes
// and Retry-After. Once the first byte of a watch is out, an HTTP error is no longer possible: then there are only
// events, and the end.
//
// Upstream: k8s.io/apiserver/pkg/endpoints
package handlers

// Package handlers is the HTTP surface of the API server: it turns a request into a call of the registry, and the
// result into bytes.
//
// Media types, bodies, tables' objects and compression are in internal/kube/negotiation. The rest that kubectl needs,
// from patches to discovery, is in internal/server/apiserver, which plugs into [Config].
//
// # Goroutines
//
// A request runs in the goroutine that net/http gives it; a watch stays in that goroutine until the stream ends. A
// second goroutine, "handlers.deadline", ends the request when its time is over, and ends with the request. A websocket
// has a goroutine that reads from it.
//
// # Contract
//
// Every answer under /api is a Kubernetes object, every failure a Status with code, reason and, where it helps, causes
// and Retry-After. Once the first byte of a watch is out, an HTTP error is no longer possible: then there are only
// events, and the end.
//
// Upstream: k8s.io/apiserver/pkg/endpoints
package handlers

// Package lens forwards to a server that is not ours, and says in words what its clients do wrong.
//
//   - lens.go: [Lens] forwards what comes to our port to that server.
//   - guard.go: what may not pass, and the Statuses that say so.
//   - exchange.go: how a body is looked at without holding it up.
//   - ask.go: what a request asks for.
//   - log.go: what is seen, in the log of the page.
//   - findings.go: what is remembered of clients: trails of requests, and writes of objects.
//   - verdicts.go: the habits that do harm, a table of functions over a trail.
//
// The goroutine of a request looks at a piece of a watch once that has been written to the client. Locks: exchange.mu,
// then names.mu; findings.mu is never held together with another. Goroutines: [Lens.Run] looks at the clock;
// everything else runs in the goroutines of requests.
//
// Differs: upstream has nothing of the kind; people read kubectl -v=8 or run mitmproxy.
package lens

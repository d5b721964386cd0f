// Package lens forwards to a server that is not ours, and says in words what its clients do wrong.
//
//   - lens.go: [Lens] forwards what comes to our port to that server, and looks at lists and watches as they pass.
//   - guard.go: what may not pass, and the Statuses that say so.
//   - exchange.go, watch.go: how bodies are looked at without holding them up.
//   - ask.go: what is seen, as records.
//   - log.go: the same in the log of the page.
//   - findings.go, rules.go: [Findings], a fold over these records that says in words what a client does wrong.
//
// Forwarding never waits for reading: bodies are copied into a queue of bounded size, and what does not fit is dropped, counted and told.
//
// Locks: Lens.mu is innermost. Goroutines: [Lens.Run] reads and folds; everything else runs in the goroutines of requests.
//
// Differs: upstream has nothing of the kind; people read kubectl -v=8 or run mitmproxy.
package lens

// Package remote is about a server that is not ours: one that kubectl proxy, or any other address, leads to.
//
//   - lens.go: [Lens] forwards what comes to our port to that server, and looks at lists and watches as they pass.
//   - transport.go: how the next address is found when one is gone.
//   - guard.go: what a guest may not do there, and the Statuses that say so.
//   - tee.go: how bodies are looked at without holding them up.
//   - record.go: what is seen, as records.
//   - show.go: the same in the log of the page.
//   - trail.go, verdict.go: [Verdicts], a fold over these records that says in words what a client does wrong.
//
// Forwarding never waits for reading: bodies are copied into a queue of bounded size, and what does not fit is dropped, counted and told.
//
// Locks: Lens.mu is innermost. Goroutines: [Lens.Run] reads and folds; everything else runs in the goroutines of requests.
//
// Differs: upstream has nothing of the kind; people read kubectl -v=8 or run mitmproxy.
package remote

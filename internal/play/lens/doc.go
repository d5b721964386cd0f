// Package lens forwards to a server that is not ours, and says in words what its clients do wrong: the verdicts,
// a table of functions over a trail of requests.
//
// The goroutine of a request looks at a piece of a watch once that has been written to the client. No two of its locks
// are held together. Goroutines: [Lens.Run] looks at the clock; everything else runs in the goroutines of requests.
//
// Differs: upstream has nothing of the kind; people read kubectl -v=8 or run mitmproxy.
package lens

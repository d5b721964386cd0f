// Package deltafifo decouples the reflector, which must never wait for a handler, from the one goroutine that applies
// changes to the local store. What goes in are the reflector's calls (Add, Update, Delete, Replace, Resync); what comes
// out are [Delta]s.
//
// Two queues live here behind one [Queue] interface: [DeltaFIFO], which gathers everything that happened to one key and
// hands it over together, and [RealFIFO], which replaced it: one item per change, in the order of arrival.
//
// # Concurrency
//
// There is no goroutine in this package. Every queue has one mutex, mu, and one condition variable on it, on which Pop
// waits for items. Writers may call from anywhere; Pop and PopBatch belong to one consumer goroutine. The processing
// function runs under mu, except in a [RealFIFO] while fewer than 2000 items wait. While mu is held a [DeltaFIFO] calls
// [KeyListerGetter], which has a lock of its own: mu is taken before that lock, so a holder of the store's lock must
// not call the queue.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go
package deltafifo

// Package processor hands each notification of the informer to every handler, and no handler can hold up the others or
// the informer.
//
// # Goroutines and channels
//
// A listener has three goroutines, which begin when the processor starts or, later, when the listener is added:
//
//   - processorListener.pop takes notifications from addCh, keeps what run has no time for in the pending ring, and
//     hands the oldest to nextCh. It never waits for the handler.
//   - processorListener.run takes from nextCh and calls the handler.
//   - processorListener.watchSynced waits until the informer has synced.
//
// Both channels are unbuffered: all the buffering is in the ring, where it can be seen and has no limit.
//
// Closing addCh ends all three: pop closes nextCh and done, which end run and watchSynced. run ends last.
//
// # Locks
//
// SharedProcessor.mu guards the listeners, their resync times, and whether there are goroutines. It is held for reading
// while a notification is distributed, and for writing while a listener is added, with its initial notifications. The
// lock is taken after the informer's locks; no lock is taken under it.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: sharedProcessor
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: processorListener
package processor

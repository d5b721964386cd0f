package processor

import (
	"fmt"

	deltafifo "listwatch/chapters/10-deltafifo"
)

// Registration is what a handler's owner holds. Its methods may be called from anywhere.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: ResourceEventHandlerRegistration
type Registration interface {
	// HasSynced says whether the handler has been told of every object of the initial list, and has returned. Once
	// true, it stays so, whatever a relist brings.
	HasSynced() bool
	// HasSyncedChecker is HasSynced to wait for: it returns a channel that is closed then.
	HasSyncedChecker() <-chan struct{}
	// ShutdownChan returns a channel that is closed when the handler is removed or the informer ends, and no call runs.
	ShutdownChan() <-chan struct{}
}

func (l *processorListener) HasSynced() bool { return deltafifo.IsDone(l.syncTracker.synced) }

func (l *processorListener) HasSyncedChecker() <-chan struct{} { return l.syncTracker.synced }

func (l *processorListener) ShutdownChan() <-chan struct{} { return l.runFinished }

// ListenerSnapshot is the state of one listener at one moment.
type ListenerSnapshot struct {
	ID         string `json:"id"`
	Handler    string `json:"handler"` // its Go type
	PendingLen int    `json:"pendingLen"`
	PendingCap int    `json:"pendingCap"`
	SlowCalls  int    `json:"slowCalls"` // over 100 ms, with more than 1024 notifications waiting
	Synced     bool   `json:"synced"`
}

func (l *processorListener) snapshot() ListenerSnapshot {
	return ListenerSnapshot{
		ID:         l.id,
		Handler:    fmt.Sprintf("%T", l.handler),
		PendingLen: int(l.pendingLen.Load()),
		PendingCap: int(l.pendingCap.Load()),
		SlowCalls:  int(l.slowCalls.Load()),
		Synced:     l.HasSynced(),
	}
}

// Snapshot returns the state of all listeners but quiet ones. It waits for no handler.
func (p *SharedProcessor) Snapshot() []ListenerSnapshot {
	listeners := *p.shown.Load()
	snapshots := make([]ListenerSnapshot, 0, len(listeners))
	for _, listener := range listeners {
		if !listener.quiet {
			snapshots = append(snapshots, listener.snapshot())
		}
	}
	return snapshots
}

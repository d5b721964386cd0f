package processor

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// SingleFileTracker knows when the last object of the initial list has been dealt with, given
// that they are dealt with one after the other. It is done when the informer has synced and as
// many were finished as were started.
//
// That is only right if everything that belongs to the initial list is started before
// UpstreamHasSynced is called: until then, equal counts mean nothing.
//
// Upstream: k8s.io/client-go/tools/cache/synctrack/synctrack.go: SingleFileTracker
type SingleFileTracker struct {
	// Made by newSingleFileTracker; closed by the later of Finished and UpstreamHasSynced.
	synced chan struct{}

	once              sync.Once    // for closing synced
	count             atomic.Int64 // started and not finished
	upstreamHasSynced atomic.Bool
}

func newSingleFileTracker() *SingleFileTracker {
	return &SingleFileTracker{synced: make(chan struct{})}
}

// Start is called before an object of the initial list is handed on.
//
// Upstream: k8s.io/client-go/tools/cache/synctrack/synctrack.go: (*SingleFileTracker).Start
func (t *SingleFileTracker) Start() { t.count.Add(1) }

// Finished is called when an object of the initial list has been dealt with. It panics if called more often than Start.
//
// Upstream: k8s.io/client-go/tools/cache/synctrack/synctrack.go: (*SingleFileTracker).Finished
func (t *SingleFileTracker) Finished() {
	left := t.count.Add(-1)
	if left < 0 {
		panic(fmt.Sprintf("processor: finished %d more than started", -left))
	}
	t.look()
}

// UpstreamHasSynced is called when the initial list is complete.
//
// Upstream: k8s.io/client-go/tools/cache/synctrack/synctrack.go: (*SingleFileTracker).UpstreamHasSynced
func (t *SingleFileTracker) UpstreamHasSynced() {
	t.upstreamHasSynced.Store(true)
	t.look()
}

// look closes synced if nothing is left. It reads upstream first: only once upstream has synced, the count can no
// longer rise, and 0 means the end. Whichever of Finished and UpstreamHasSynced comes last sees both.
//
// Differs: upstream's Finished counts first and then asks for upstream. Between the two the rest of a late handler's
// replay can be started, and the handler counts as synced in the middle of it.
func (t *SingleFileTracker) look() {
	if t.upstreamHasSynced.Load() && t.count.Load() == 0 {
		t.once.Do(func() { close(t.synced) })
	}
}

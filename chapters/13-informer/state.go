package informer

import (
	"fmt"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
)

// GetIndexer returns the store. It may be read at any time, and must not be written to.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).GetIndexer
// Differs: has no GetStore, which is the same without indices.
func (s *SharedIndexInformer) GetIndexer() *indexer.Indexer { return s.indexer }

// AddIndexers is [indexer.Indexer.AddIndexers], also for a running informer; after the informer's end it is an error.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).AddIndexers
func (s *SharedIndexInformer) AddIndexers(indexers indexer.Indexers) error {
	s.startedMu.Lock()
	defer s.startedMu.Unlock()
	if s.stopped {
		return fmt.Errorf("add indexers to %s: the informer has stopped", s.config.Name)
	}
	return s.indexer.AddIndexers(indexers)
}

// HasSynced says whether the store holds the initial state: the queue has synced. Handlers may still be behind: each
// has a HasSynced of its own, on its registration.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).HasSynced
func (s *SharedIndexInformer) HasSynced() bool { return s.queue.HasSynced() }

// HasSyncedChecker is HasSynced to wait for: it returns a channel that is closed then.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).HasSyncedChecker
// Differs: the channel is the queue's. Upstream makes the queue in Run, and a goroutine waits there for its channel to
// close the informer's.
func (s *SharedIndexInformer) HasSyncedChecker() <-chan struct{} { return s.queue.HasSyncedChecker() }

// LastSyncResourceVersion is how far the reflector is: the queue holds everything up to it, the store perhaps not yet.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).LastSyncResourceVersion
func (s *SharedIndexInformer) LastSyncResourceVersion() string {
	controller := s.controller.Load()
	if controller == nil {
		return ""
	}
	return controller.reflector.LastSyncResourceVersion()
}

// Snapshot is the state of an informer at one moment.
type Snapshot struct {
	Name          string                       `json:"name"`
	Synced        bool                         `json:"synced"`
	ProcessErrors int                          `json:"processErrors"`
	Reflector     reflector.Snapshot           `json:"reflector"`
	FIFO          deltafifo.Snapshot           `json:"fifo"`
	Indexer       indexer.Snapshot             `json:"indexer"`
	Listeners     []processor.ListenerSnapshot `json:"listeners"`
}

// Snapshot returns the state of the informer. It does not wait for a goroutine that is distributing.
func (s *SharedIndexInformer) Snapshot() Snapshot {
	snapshot := Snapshot{
		Name:      s.config.Name,
		Synced:    s.HasSynced(),
		FIFO:      s.queue.Snapshot(),
		Indexer:   s.indexer.Snapshot(),
		Listeners: s.processor.Snapshot(),
	}
	if controller := s.controller.Load(); controller != nil {
		snapshot.ProcessErrors = int(controller.processErrors.Load())
		snapshot.Reflector = controller.reflector.Snapshot()
	}
	return snapshot
}

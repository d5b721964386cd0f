package deltafifo

import (
	"errors"

	reflector "listwatch/chapters/03-reflector"
)

// ErrFIFOClosed is what Pop returns once the queue is closed and empty.
//
// Upstream: k8s.io/client-go/tools/cache/fifo.go: ErrFIFOClosed
var ErrFIFOClosed = errors.New("queue is closed")

// PopProcessFunc is given what was taken from the queue: by Pop of a [DeltaFIFO] all that waited for one key, oldest
// first; by Pop of a [RealFIFO] one delta; by PopBatch consecutive deltas of different keys. isInInitialList says that
// the first list has not been processed yet. It runs on the consumer's goroutine, and must not call the queue, whose
// lock is held: by a [DeltaFIFO] always, by a [RealFIFO] while at least 2000 more deltas wait. It may keep deltas.
//
// Upstream: k8s.io/client-go/tools/cache/fifo.go: PopProcessFunc
// Upstream: k8s.io/client-go/tools/cache/controller.go: ProcessBatchFunc
// Differs: takes Deltas; upstream takes an interface{} that is always Deltas, and a []Delta for a batch.
type PopProcessFunc func(deltas Deltas, isInInitialList bool) error

// Queue is a store to the reflector on one side and a queue to its consumer on the other.
//
// Upstream: k8s.io/client-go/tools/cache/fifo.go: Queue
// Differs: HasSyncedChecker is a channel; upstream's DoneChecker has a name, too, for logs.
type Queue interface {
	reflector.Store

	// Pop waits until there is something to process, takes it and calls process. It returns
	// what process returned, or [ErrFIFOClosed] if the queue is closed and empty. What was
	// taken is gone even if process fails. Only one goroutine may call it.
	Pop(process PopProcessFunc) error
	// HasSynced says whether all of the first list has been processed. Once true, it stays so.
	HasSynced() bool
	// HasSyncedChecker returns a channel without values, closed when the queue has synced.
	HasSyncedChecker() <-chan struct{}
	// Close makes Pop return [ErrFIFOClosed] once the queue is empty. Only Close ends a wait of
	// Pop for an item. Writers are not refused.
	Close()
	// Snapshot returns the state of the queue without waiting for the processing function.
	Snapshot() Snapshot
}

// QueueWithBatch is a [Queue] whose consumer may take several deltas at once.
//
// Upstream: k8s.io/client-go/tools/cache/fifo.go: QueueWithBatch
type QueueWithBatch interface {
	Queue

	// PopBatch waits like Pop, takes as many deltas as may be processed together, and calls processBatch, or
	// processSingle if it took only one. Its errors are like Pop's.
	PopBatch(processBatch, processSingle PopProcessFunc) error
}

// KeyListerGetter is what a queue needs to know about the store that its consumer fills. Both methods may be called
// under the queue's lock and must not call back.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: KeyListerGetter
type KeyListerGetter interface {
	// ListKeys returns the keys of all objects in the store, in any order. The slice is the caller's.
	ListKeys() []string
	// GetByKey returns the object stored under key. An error means that it cannot be told whether there is one.
	GetByKey(key string) (obj any, exists bool, err error)
}

// IsDone asks without waiting whether done is closed.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: IsDone
func IsDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Snapshot is the state of a queue at one moment.
type Snapshot struct {
	Kind   string `json:"kind"`   // "real" or "delta"
	Len    int    `json:"len"`    // deltas that wait
	Synced bool   `json:"synced"` // the first list has been processed
}

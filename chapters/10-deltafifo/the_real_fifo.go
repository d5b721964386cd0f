package deltafifo

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/probe"
)

// defaultBatchSize is the most deltas one PopBatch takes. While twice as many wait, RealFIFO keeps its lock during
// processing, so that the reflector, and through TCP the server, waits for the consumer to catch up.
const defaultBatchSize = 1000

// RealFIFO is a queue of changes in the order of their arrival. Nothing is merged, nothing is
// dropped, and so a consumer that applies them one by one passes through the states the server
// passed through. It never looks at the consumer's store: a whole list is one delta, a whole
// resync another, and what they mean for the store is the consumer's to find out. That is why
// writers may be let in while a delta is processed.
//
//	items [ Added a | Added b | Updated a | Deleted a | ReplacedAll [a c] | Updated c ]
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: RealFIFO
type RealFIFO struct {
	commonFIFO // mu guards items, too

	items []Delta // what waits, the oldest first
}

var _ QueueWithBatch = (*RealFIFO)(nil)
var _ reflector.BookmarkStore = (*RealFIFO)(nil)
var _ reflector.TransformingStore = (*RealFIFO)(nil)
var _ reflector.TransformingStore = (*DeltaFIFO)(nil)

// NewRealFIFO returns an empty queue. transformer, which may be nil, is applied to every object on entry, tombstones
// excepted.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: NewRealFIFOWithOptions
// Differs: no switches AtomicEvents, UnlockWhileProcessing and EmitDeltaTypeBookmark: all three are on, as in every
// informer since 1.36. Without the first, a list becomes a delta for each object and for each deletion.
func NewRealFIFO(transformer reflector.TransformFunc, p *probe.Probe) *RealFIFO {
	f := &RealFIFO{}
	f.init("real", transformer, p)
	return f
}

// Add queues obj as [Added]. It fails, and queues nothing, if the transformer fails or obj has no key.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Add
func (f *RealFIFO) Add(obj any) error { return f.enqueue(Added, obj) }

// Update queues obj as [Updated]. It fails as Add does, and so does Delete.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Update
func (f *RealFIFO) Update(obj any) error { return f.enqueue(Updated, obj) }

// Delete queues obj as [Deleted], known or not: to find out, the queue would have to read a store that is about to
// change. So a handler may get OnDelete for a key that it never had. (A [DeltaFIFO] drops the deletion of such a key.)
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Delete
func (f *RealFIFO) Delete(obj any) error { return f.enqueue(Deleted, obj) }

func (f *RealFIFO) enqueue(deltaType DeltaType, obj any) error {
	delta, err := f.prepare(deltaType, obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.populatedLocked(0)
	if err != nil {
		return err
	}
	f.addToItemsLocked(delta)
	return nil
}

// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).addToItems_locked
func (f *RealFIFO) addToItemsLocked(delta Delta) {
	f.items = append(f.items, delta)
	f.addedLocked(&delta, 1)
}

// Replace queues list as one [ReplacedAll]. By the time that is processed, everything queued
// before it has been applied, and the consumer compares the list with its store. It counts as
// one item of a first list, so that an empty list is waited for, too. If the transformer fails
// for one object, nothing is queued.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Replace
func (f *RealFIFO) Replace(list []any, resourceVersion string) error {
	objects, err := f.transformAll(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info := ReplacedAllInfo{ResourceVersion: resourceVersion, Objects: objects}
	f.addToItemsLocked(Delta{Type: ReplacedAll, Object: info})
	f.populatedLocked(len(f.items))
	return nil
}

// transformAll returns the objects transformed, in another slice; without a transformer, list itself.
func (f *RealFIFO) transformAll(list []any) ([]any, error) {
	if f.transformer == nil {
		return list, nil
	}
	objects := make([]any, len(list))
	for i, obj := range list {
		transformed, err := f.transformer(obj)
		if err != nil {
			return nil, err
		}
		objects[i] = transformed
	}
	return objects, nil
}

// Resync queues one [SyncAll]. It never fails.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Resync
func (f *RealFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addToItemsLocked(Delta{Type: SyncAll, Object: SyncAllInfo{}})
	return nil
}

// Bookmark queues the news that the queue has everything up to resourceVersion. It implements
// [reflector.BookmarkStore], and never fails.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Bookmark
func (f *RealFIFO) Bookmark(resourceVersion string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addToItemsLocked(Delta{Type: Bookmark, Object: BookmarkInfo{ResourceVersion: resourceVersion}})
	return nil
}

// Pop waits for an item, takes the oldest and processes it. The error is process's, or [ErrFIFOClosed].
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Pop
func (f *RealFIFO) Pop(process PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitForItemLocked(); err != nil {
		return err
	}
	return f.takeLocked(1, process)
}

// PopBatch waits for an item, takes all that may be applied together with the oldest, and
// processes them.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).PopBatch
func (f *RealFIFO) PopBatch(processBatch, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitForItemLocked(); err != nil {
		return err
	}
	n := f.batchLocked()
	if n == 1 {
		return f.takeLocked(1, processSingle)
	}
	return f.takeLocked(n, processBatch)
}

// batchLocked returns how many items the next batch has, at least 1. The batch ends
//
//   - before the second delta of a key, so that each has one "before" and one "after" in the
//     store,
//   - before a delta that concerns more than one key (or none), unless it is the first, and
//     then it is alone.
//
// The first list is therefore alone, too, and isInInitialList true for all of a batch or none.
func (f *RealFIFO) batchLocked() int {
	limit := min(len(f.items), defaultBatchSize)
	unique := sets.Set[string]{}
	for i, delta := range f.items[:limit] {
		if !batchable(delta.Type) {
			return max(i, 1)
		}
		if unique.Has(delta.Key) {
			return i
		}
		unique.Insert(delta.Key)
	}
	return limit
}

// batchable says whether a delta concerns exactly one key.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: batchable
func batchable(deltaType DeltaType) bool {
	return deltaType == Added || deltaType == Updated || deltaType == Deleted
}

// takeLocked takes the first n items and processes them. The queue counts as synced after the
// last item of the first list has been processed, not before: a caller of HasSynced must find
// that item in the store.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).PopBatch
// Differs: what was taken before there was a first list is not counted as part of it; upstream
// subtracts it when it has been processed, and a queue to which a Bookmark came first can be
// synced while the list still waits in it.
func (f *RealFIFO) takeLocked(n int, process PopProcessFunc) error {
	taken := Deltas(slices.Clone(f.items[:n]))
	clear(f.items[:n]) // the array lives on: let go of the objects
	f.items = f.items[n:]
	f.poppedLocked(taken)
	populated := f.populated // the reflector may queue the first list during process
	err := f.whileProcessingLocked(process, taken, !f.HasSynced())
	if populated {
		f.processedLocked(n)
	}
	return err
}

// whileProcessingLocked calls process, without mu while fewer than two batches wait: the one
// consumer works, and the reflector queues meanwhile. If more wait, mu stays locked, so that
// the reflector waits, too, and the queue cannot grow without end. It holds mu again in the
// end, even if process panics.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).whileProcessing_locked
func (f *RealFIFO) whileProcessingLocked(process PopProcessFunc, taken Deltas,
	isInInitialList bool) error {
	if len(f.items) < 2*defaultBatchSize {
		f.mu.Unlock()
		defer f.mu.Lock()
	}
	return process(taken, isInInitialList)
}

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

// RealFIFOOptions configures a [RealFIFO].
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: RealFIFOOptions
type RealFIFOOptions struct {
	Name        string                  // what the queue is called when it is waited for; default "RealFIFO"
	KeyFunction reflector.KeyFunc       // default [reflector.MetaNamespaceKeyFunc]
	Transformer reflector.TransformFunc // applied to every object on entry, tombstones and Sync excepted
	Probe       *probe.Probe

	// AtomicEvents makes one delta of a whole list and one of a whole resync, and leaves it to the consumer to find out
	// what they mean for its store. Without it the queue finds out itself, from KnownObjects.
	AtomicEvents bool
	// KnownObjects is what the consumer's store holds: required without AtomicEvents, forbidden with it.
	KnownObjects KeyListerGetter
	// UnlockWhileProcessing lets writers in while a delta is processed. It requires AtomicEvents: a queue that reads
	// the store must not do so while the store is being changed.
	UnlockWhileProcessing bool
	// EmitDeltaTypeBookmark queues bookmarks; otherwise they are ignored. It requires AtomicEvents: without it a
	// bookmark could overtake what a Replace has yet to tell.
	EmitDeltaTypeBookmark bool
}

// RealFIFO is a queue of changes in the order of their arrival. Nothing is merged, nothing is
// dropped, and so a consumer that applies them one by one passes through the states the server
// passed through.
//
//	items [ Added a | Added b | Updated a | Deleted a | ReplacedAll [a c] | Updated c ]
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: RealFIFO
type RealFIFO struct {
	commonFIFO // mu guards items, too

	// Set by NewRealFIFO from the [RealFIFOOptions] of these names, never changed.
	atomicEvents          bool
	unlockWhileProcessing bool
	emitDeltaTypeBookmark bool

	items []Delta // what waits, the oldest first
}

var _ QueueWithBatch = (*RealFIFO)(nil)
var _ reflector.BookmarkStore = (*RealFIFO)(nil)
var _ reflector.TransformingStore = (*RealFIFO)(nil)
var _ reflector.TransformingStore = (*DeltaFIFO)(nil)

// NewRealFIFO returns an empty queue. It panics if opts contradict each other.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: NewRealFIFOWithOptions
func NewRealFIFO(opts RealFIFOOptions) *RealFIFO {
	opts.mustBeLegal()
	f := &RealFIFO{
		commonFIFO: commonFIFO{
			keyFunc:      opts.KeyFunction,
			knownObjects: opts.KnownObjects,
			transformer:  opts.Transformer,
			probe:        opts.Probe,
		},
		atomicEvents:          opts.AtomicEvents,
		unlockWhileProcessing: opts.UnlockWhileProcessing,
		emitDeltaTypeBookmark: opts.EmitDeltaTypeBookmark,
	}
	name := opts.Name
	if name == "" {
		name = "RealFIFO"
	}
	f.init("real", name)
	return f
}

func (o *RealFIFOOptions) mustBeLegal() {
	switch {
	case o.AtomicEvents && o.KnownObjects != nil:
		panic("deltafifo: AtomicEvents forbids KnownObjects")
	case !o.AtomicEvents && o.KnownObjects == nil:
		panic("deltafifo: KnownObjects is required without AtomicEvents")
	case !o.AtomicEvents && o.UnlockWhileProcessing:
		panic("deltafifo: UnlockWhileProcessing requires AtomicEvents")
	case !o.AtomicEvents && o.EmitDeltaTypeBookmark:
		panic("deltafifo: EmitDeltaTypeBookmark requires AtomicEvents")
	}
}

// Add queues obj as [Added].
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Add
func (f *RealFIFO) Add(obj any) error { return f.enqueue(Added, obj) }

// Update queues obj as [Updated].
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Update
func (f *RealFIFO) Update(obj any) error { return f.enqueue(Updated, obj) }

// Delete queues obj as [Deleted], known or not: to find out, the queue would have to look at a store that is about to
// change. A handler may therefore be told of the deletion of something it was never told of.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Delete
func (f *RealFIFO) Delete(obj any) error { return f.enqueue(Deleted, obj) }

func (f *RealFIFO) enqueue(deltaType DeltaType, obj any) error {
	delta, err := f.prepare(deltaType, obj)
	f.lock()
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
	f.addedLocked(&delta, len(f.items))
}

// Replace queues list as one [ReplacedAll]; or, without AtomicEvents, as a [Deleted] for every key that is queued or
// known but not listed, and then a [Replaced] for every object.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Replace
func (f *RealFIFO) Replace(list []any, resourceVersion string) error {
	if f.atomicEvents {
		return f.replaceAll(list, resourceVersion)
	}
	deltas, err := f.prepareAll(Replaced, list)
	if err != nil {
		return err
	}
	f.lock()
	defer f.mu.Unlock()
	for _, tombstone := range f.deletionsLocked(keySet(deltas)) {
		f.addToItemsLocked(Delta{Type: Deleted, Object: tombstone, Key: tombstone.Key})
	}
	for _, delta := range deltas {
		f.addToItemsLocked(delta)
	}
	f.populatedLocked(len(f.items))
	return nil
}

// replaceAll leaves to the consumer what the list means for its store: by the time it is
// processed, everything queued before it has been applied. It counts as one item of a first
// list, so that an empty list is waited for, too.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).addReplaceToItemsLocked
func (f *RealFIFO) replaceAll(list []any, resourceVersion string) error {
	objects, err := f.transformAll(list)
	if err != nil {
		return err
	}
	f.lock()
	defer f.mu.Unlock()
	info := ReplacedAllInfo{ResourceVersion: resourceVersion, Objects: objects}
	f.addToItemsLocked(Delta{Type: ReplacedAll, Object: info})
	f.populatedLocked(len(f.items))
	return nil
}

// transformAll never writes to list, which belongs to the reflector.
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

// deletionsLocked returns a tombstone for each key that is queued or known but not listed. A key whose last queued
// delta is a deletion needs no second one.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: reconcileReplacement
func (f *RealFIFO) deletionsLocked(listed map[string]struct{}) []DeletedFinalStateUnknown {
	queued := keySet(f.items)
	last := make(map[string]*Delta, len(queued))
	var keys []string // of items, in order of first appearance
	for i := range f.items {
		delta := &f.items[i]
		if last[delta.Key] == nil {
			keys = append(keys, delta.Key)
		}
		last[delta.Key] = delta
	}
	var deletions []DeletedFinalStateUnknown
	for _, key := range keys {
		_, isListed := listed[key]
		if isListed || last[key].Type == Deleted {
			continue
		}
		deletions = append(deletions, DeletedFinalStateUnknown{Key: key, Obj: last[key].Object})
	}
	return append(deletions, gone(f.knownObjects, listed, queued)...)
}

// Resync queues one [SyncAll]; or, without AtomicEvents, a [Sync] for every object of the store whose key is not
// queued.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Resync
func (f *RealFIFO) Resync() error {
	f.lock()
	defer f.mu.Unlock()
	if f.atomicEvents {
		f.addToItemsLocked(Delta{Type: SyncAll, Object: SyncAllInfo{}})
		return nil
	}
	queued := keySet(f.items)
	for _, obj := range unqueued(f.knownObjects, func(key string) bool { _, ok := queued[key]; return ok }) {
		delta, err := f.prepare(Sync, obj)
		if err != nil {
			return err
		}
		f.addToItemsLocked(delta)
	}
	return nil
}

// Bookmark queues the news that everything up to resourceVersion has been told. It implements
// [reflector.BookmarkStore].
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Bookmark
func (f *RealFIFO) Bookmark(resourceVersion string) error {
	if !f.emitDeltaTypeBookmark {
		return nil
	}
	f.lock()
	defer f.mu.Unlock()
	f.addToItemsLocked(Delta{Type: Bookmark, Object: BookmarkInfo{ResourceVersion: resourceVersion}})
	return nil
}

// Pop waits for an item, takes the oldest and processes it.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Pop
func (f *RealFIFO) Pop(process PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.items) == 0 {
		if f.closed {
			return ErrFIFOClosed
		}
		f.waitForItemLocked()
	}
	return f.takeLocked(1, process)
}

// PopBatch waits for an item, takes all that may be applied together with the oldest, and
// processes them.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).PopBatch
func (f *RealFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.items) == 0 {
		if f.closed {
			return ErrFIFOClosed
		}
		f.waitForItemLocked()
	}
	n := f.batchLocked()
	if n == 1 {
		return f.takeLocked(1, processSingle)
	}
	return f.takeLocked(n, PopProcessFunc(processBatch))
}

// batchLocked returns how many items the next batch has, at least 1. The batch ends
//
//   - before the second delta of a key, so that each has one "before" and one "after" in the
//     store,
//   - before a delta that concerns more than one key (or none), unless it is the first, and
//     then it is alone,
//   - with the first list, so that isInInitialList is true for all of it or none.
func (f *RealFIFO) batchLocked() int {
	limit := min(len(f.items), defaultBatchSize)
	if f.initialPopulationCount > 0 {
		limit = min(limit, f.initialPopulationCount)
	}
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
	switch deltaType {
	case Added, Updated, Deleted, Replaced, Sync:
		return true
	default:
		return false
	}
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
	f.poppedLocked(taken, len(f.items))
	populated := f.populated
	err := f.whileProcessingLocked(process, taken, !f.HasSynced())
	if populated {
		f.processedLocked(n)
	}
	return err
}

// whileProcessingLocked calls process, without mu if the option allows it and fewer than two
// batches wait: the reflector can queue meanwhile. It holds mu again in the end, even if
// process panics.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).whileProcessing_locked
func (f *RealFIFO) whileProcessingLocked(process PopProcessFunc, taken Deltas,
	isInInitialList bool) error {
	if f.unlockWhileProcessing && len(f.items) < 2*defaultBatchSize {
		f.mu.Unlock()
		defer f.mu.Lock()
	}
	return process(taken, isInInitialList)
}

package deltafifo

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/probe"
)

// DeltaFIFO is a queue of keys, each with the list of everything that happened to it since it was queued. It
// guarantees the order of the changes to one key, and nothing between keys.
//
//	queue   [ default/a      default/b ]
//	items     Added          Updated
//	          Updated
//	          Deleted
//
// Pop takes the first key with its whole list, and holds mu while that is processed. Two deletions in a row become the
// one that has the final state; nothing else is merged. A key is in queue exactly if it is in items, and at most once.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: DeltaFIFO
// Differs: a list is always told as Replaced; upstream can be told to make Sync of it, as before 2020.
type DeltaFIFO struct {
	commonFIFO // mu guards items and queue, too

	knownObjects KeyListerGetter // the consumer's store; set by NewDeltaFIFO; nil: only what is queued is known

	items map[string]Deltas // no list in it is empty
	queue []string          // the keys of items, in order of first insertion
}

// NewDeltaFIFO returns an empty queue. transformer, which may be nil, is applied to every object on entry, tombstones
// and Sync excepted.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: NewDeltaFIFOWithOptions
func NewDeltaFIFO(known KeyListerGetter, transformer reflector.TransformFunc, p *probe.Probe) *DeltaFIFO {
	f := &DeltaFIFO{knownObjects: known, items: map[string]Deltas{}}
	f.init("delta", transformer, p)
	return f
}

// Add queues obj as [Added]. It fails, and queues nothing, if the transformer fails or obj has no key.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Add
func (f *DeltaFIFO) Add(obj any) error { return f.queueAction(Added, obj) }

// Update queues obj as [Updated]. It fails as Add does, and so does Delete.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Update
func (f *DeltaFIFO) Update(obj any) error { return f.queueAction(Updated, obj) }

// Delete queues obj as [Deleted], unless its key is unknown, to the queue and to the store: then a list has shown the
// deletion before. (A [RealFIFO] always queues it.)
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Delete
func (f *DeltaFIFO) Delete(obj any) error { return f.queueAction(Deleted, obj) }

func (f *DeltaFIFO) queueAction(deltaType DeltaType, obj any) error {
	delta, err := f.prepare(deltaType, obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.populatedLocked(0)
	if err != nil {
		return err
	}
	if deltaType != Deleted || f.knowsLocked(delta.Key) {
		f.queueActionLocked(delta)
	}
	return nil
}

// knowsLocked says whether key is queued or stored. A store that cannot answer counts as one that knows the key: one
// deletion too many does no harm, one too few does.
func (f *DeltaFIFO) knowsLocked(key string) bool {
	if f.isQueuedLocked(key) {
		return true
	}
	if f.knownObjects == nil {
		return false
	}
	_, exists, err := f.knownObjects.GetByKey(key)
	return err != nil || exists
}

// queueActionLocked appends delta to the list of its key and queues the key if it was not.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).queueActionInternalLocked
func (f *DeltaFIFO) queueActionLocked(delta Delta) {
	old, queued := f.items[delta.Key]
	if !queued {
		f.queue = append(f.queue, delta.Key)
	}
	deltas := dedupDeltas(append(old, delta))
	f.items[delta.Key] = deltas
	f.addedLocked(&delta, len(deltas)-len(old))
}

// dedupDeltas merges the last two deltas if both are deletions, which happens when a deletion is seen by the watch and
// inferred from a list. The one that knows the final state survives; between equals, the older.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: dedupDeltas
func dedupDeltas(deltas Deltas) Deltas {
	n := len(deltas)
	if n < 2 || deltas[n-1].Type != Deleted || deltas[n-2].Type != Deleted {
		return deltas
	}
	if _, unknown := deltas[n-2].Object.(DeletedFinalStateUnknown); unknown {
		deltas[n-2] = deltas[n-1]
	}
	deltas[n-1] = Delta{} // let go of the object
	return deltas[:n-1]
}

// Replace queues every object of list as [Replaced], and then a [Deleted] for every key that is queued or known but not
// listed: a [DeletedFinalStateUnknown] of the newest object queued, or else stored. The version is not kept.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Replace
// Differs: all or nothing: an object without a key refuses the whole list; upstream keeps what came before it.
func (f *DeltaFIFO) Replace(list []any, _ string) error {
	deltas := make(Deltas, len(list))
	listed := sets.Set[string]{}
	for i, obj := range list {
		var err error
		if deltas[i], err = f.prepare(Replaced, obj); err != nil {
			return err
		}
		listed.Insert(deltas[i].Key)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, delta := range deltas {
		f.queueActionLocked(delta)
	}
	deletions := f.deletionsLocked(listed)
	for _, tombstone := range deletions {
		f.queueActionLocked(Delta{Type: Deleted, Object: tombstone, Key: tombstone.Key})
	}
	f.populatedLocked(len(listed) + len(deletions))
	return nil
}

// deletionsLocked returns a tombstone for each key that is queued or stored but not listed: the queued ones first, with
// the newest object queued. All that is listed is queued by now.
func (f *DeltaFIFO) deletionsLocked(listed sets.Set[string]) []DeletedFinalStateUnknown {
	var deletions []DeletedFinalStateUnknown
	for _, key := range f.queue {
		if listed.Has(key) {
			continue
		}
		queued := f.items[key]
		obj := queued[len(queued)-1].Object
		if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		deletions = append(deletions, DeletedFinalStateUnknown{Key: key, Obj: obj})
	}
	for _, key := range f.unqueuedLocked() {
		obj, exists, err := f.knownObjects.GetByKey(key)
		if err != nil || !exists {
			obj = nil // the key is all that is left to say
		}
		deletions = append(deletions, DeletedFinalStateUnknown{Key: key, Obj: obj})
	}
	return deletions
}

// unqueuedLocked returns the keys of the store for which nothing is queued.
//
// Differs: sorted, so that the same relist gives the same deletions in the same order; upstream's is that of a Go map.
func (f *DeltaFIFO) unqueuedLocked() []string {
	if f.knownObjects == nil {
		return nil
	}
	keys := slices.DeleteFunc(f.knownObjects.ListKeys(), f.isQueuedLocked)
	slices.Sort(keys)
	return keys
}

// Resync queues a [Sync] for every object of the store whose key is not queued: the deltas that wait for the others are
// newer than the store. It never fails.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Resync
func (f *DeltaFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range f.unqueuedLocked() {
		obj, exists, err := f.knownObjects.GetByKey(key)
		if err != nil || !exists {
			continue
		}
		f.queueActionLocked(Delta{Type: Sync, Object: obj, Key: key})
	}
	return nil
}

func (f *DeltaFIFO) isQueuedLocked(key string) bool {
	_, queued := f.items[key]
	return queued
}

// Pop takes the first key with all its deltas and processes them, holding mu until process returns: nothing can be
// queued meanwhile, so process may change the store that Replace and Resync look at. The queue counts as synced after
// the last key of the first list has been processed.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Pop
// Differs: closes the channel of HasSyncedChecker after processing; upstream does so just before, while its HasSynced
// waits for the lock and hence for the end of processing. A waiter on the channel can be early there.
func (f *DeltaFIFO) Pop(process PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitForItemLocked(); err != nil {
		return err
	}
	isInInitialList := !f.HasSynced()
	key := f.queue[0]
	f.queue = f.queue[1:]
	deltas := f.items[key]
	delete(f.items, key)
	f.poppedLocked(deltas)
	defer f.processedLocked(1)
	return process(deltas, isInInitialList)
}

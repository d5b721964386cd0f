package deltafifo

import (
	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/probe"
)

// DeltaFIFOOptions configures a [DeltaFIFO].
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: DeltaFIFOOptions
type DeltaFIFOOptions struct {
	Name         string                  // what the queue is called when it is waited for; default "DeltaFIFO"
	KeyFunction  reflector.KeyFunc       // default [reflector.MetaNamespaceKeyFunc]
	KnownObjects KeyListerGetter         // what the consumer's store holds; nil: only what is queued is known
	Transformer  reflector.TransformFunc // applied to every object on entry, tombstones and Sync excepted
	Probe        *probe.Probe

	// EmitDeltaTypeReplaced makes Replace emit [Replaced], as every informer wants it. Without it, as before 2020,
	// Replace emits [Sync], and a relist looks like a resync.
	EmitDeltaTypeReplaced bool
}

// DeltaFIFO is a queue of keys, each with the list of everything that happened to it since it was queued. It
// guarantees the order of the changes to one key, and nothing between keys.
//
//	queue   [ default/a      default/b ]
//	items     Added          Updated
//	          Updated
//	          Deleted
//
// Pop takes the first key with its whole list. A key is in queue exactly if it is in items, and at most once.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: DeltaFIFO
type DeltaFIFO struct {
	commonFIFO // mu guards the fields below, too

	// Set by NewDeltaFIFO, never changed.
	emitDeltaTypeReplaced bool // false: a list becomes Sync deltas, as before 2020

	items map[string]Deltas // no list in it is empty
	queue []string          // the keys of items, in order of first insertion
	n     int               // deltas in all lists together
}

var _ Queue = (*DeltaFIFO)(nil)

// NewDeltaFIFO returns an empty queue.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: NewDeltaFIFOWithOptions
func NewDeltaFIFO(opts DeltaFIFOOptions) *DeltaFIFO {
	f := &DeltaFIFO{
		commonFIFO: commonFIFO{
			keyFunc:      opts.KeyFunction,
			knownObjects: opts.KnownObjects,
			transformer:  opts.Transformer,
			probe:        opts.Probe,
		},
		emitDeltaTypeReplaced: opts.EmitDeltaTypeReplaced,
		items:                 map[string]Deltas{},
	}
	name := opts.Name
	if name == "" {
		name = "DeltaFIFO"
	}
	f.init("delta", name)
	return f
}

// Add queues obj as [Added].
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Add
func (f *DeltaFIFO) Add(obj any) error { return f.queueAction(Added, obj) }

// Update queues obj as [Updated].
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Update
func (f *DeltaFIFO) Update(obj any) error { return f.queueAction(Updated, obj) }

func (f *DeltaFIFO) queueAction(deltaType DeltaType, obj any) error {
	delta, err := f.prepare(deltaType, obj)
	f.lock()
	defer f.mu.Unlock()
	f.populatedLocked(0)
	if err != nil {
		return err
	}
	f.queueActionLocked(delta)
	return nil
}

// Delete queues obj as [Deleted], unless its key is unknown: to the queue and to the store. A relist
// has then told of the deletion already.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Delete
func (f *DeltaFIFO) Delete(obj any) error {
	delta, err := f.prepare(Deleted, obj)
	f.lock()
	defer f.mu.Unlock()
	f.populatedLocked(0)
	if err != nil {
		return err
	}
	if f.knowsLocked(delta.Key) {
		f.queueActionLocked(delta)
	}
	return nil
}

// knowsLocked says whether key is queued or stored. A store that cannot answer counts as one that knows the key: one
// deletion too many does no harm, one too few does.
func (f *DeltaFIFO) knowsLocked(key string) bool {
	if _, queued := f.items[key]; queued {
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
	f.n += len(deltas) - len(old)
	f.addedLocked(&delta, f.n)
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

// Replace queues every object of list as [Replaced], and then a [Deleted] with a [DeletedFinalStateUnknown] for every
// key that is queued or known but not listed. The resource version is of no interest here.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Replace
// Differs: all or nothing: an object without a key refuses the whole list; upstream keeps what came before it.
func (f *DeltaFIFO) Replace(list []any, _ string) error {
	deltas, err := f.prepareAll(Replaced, list)
	if err != nil {
		return err
	}
	f.lock()
	defer f.mu.Unlock()
	for _, delta := range deltas {
		if !f.emitDeltaTypeReplaced {
			delta.Type = Sync // after prepare, which would not have transformed it
		}
		f.queueActionLocked(delta)
	}
	listed := keySet(deltas)
	deletions := f.deletionsLocked(listed)
	for _, tombstone := range deletions {
		f.queueActionLocked(Delta{Type: Deleted, Object: tombstone, Key: tombstone.Key})
	}
	f.populatedLocked(len(listed) + len(deletions))
	return nil
}

// deletionsLocked returns a tombstone for each key that is queued or known but not listed: the queued ones first, with
// the newest object queued.
func (f *DeltaFIFO) deletionsLocked(listed map[string]struct{}) []DeletedFinalStateUnknown {
	var deletions []DeletedFinalStateUnknown
	queued := make(map[string]struct{}, len(f.queue))
	for _, key := range f.queue {
		queued[key] = struct{}{}
		if _, isListed := listed[key]; isListed {
			continue
		}
		obj := f.items[key].Newest().Object
		if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		deletions = append(deletions, DeletedFinalStateUnknown{Key: key, Obj: obj})
	}
	return append(deletions, gone(f.knownObjects, listed, queued)...)
}

// Resync queues a [Sync] for every object of the store whose key is not queued.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: (*DeltaFIFO).Resync
func (f *DeltaFIFO) Resync() error {
	f.lock()
	defer f.mu.Unlock()
	for _, obj := range unqueued(f.knownObjects, f.isQueuedLocked) {
		delta, err := f.prepare(Sync, obj)
		if err != nil {
			return err
		}
		f.queueActionLocked(delta)
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
	for len(f.queue) == 0 {
		if f.closed {
			return ErrFIFOClosed
		}
		f.waitForItemLocked()
	}
	isInInitialList := !f.HasSynced()
	key := f.queue[0]
	f.queue = f.queue[1:]
	deltas := f.items[key]
	delete(f.items, key)
	f.n -= len(deltas)
	f.poppedLocked(deltas, f.n)
	defer f.processedLocked(1)
	return process(deltas, isInInitialList)
}

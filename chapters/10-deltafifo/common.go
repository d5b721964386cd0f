package deltafifo

import (
	"sync"
	"sync/atomic"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/probe"
)

// commonFIFO is what both queues have besides their items: the lock, the wait for items, the way in for an object, and
// the knowledge of when the first list has been processed. A queue is
//
//   - populated once the first Replace, Add, Update or Delete has happened,
//   - synced once it is populated and none of the items of that first Replace is left.
//
// A queue whose first call is not Replace is synced at once: there is no first list to wait for.
type commonFIFO struct {
	// Set by the constructor, never changed.
	name         string
	kind         string
	keyFunc      reflector.KeyFunc
	knownObjects KeyListerGetter         // nil: only what is queued is known
	transformer  reflector.TransformFunc // nil: objects are stored as they come
	probe        *probe.Probe
	synced       chan struct{} // closed by checkSyncedLocked, once; nothing is sent

	queued atomic.Int64 // deltas that wait; written under mu, read by Snapshot without it

	// guards the fields below and the items of the queue; taken before the store's lock
	mu                     sync.Mutex
	cond                   sync.Cond // on mu: there may be an item now, or the queue is closed
	populated              bool
	initialPopulationCount int // items of the first Replace that are not processed yet
	closed                 bool
}

func (c *commonFIFO) init(kind, name string) {
	c.kind = kind
	c.name = name
	if c.keyFunc == nil {
		c.keyFunc = reflector.MetaNamespaceKeyFunc
	}
	c.synced = make(chan struct{})
	c.cond.L = &c.mu
}

// Name implements [DoneChecker].
func (c *commonFIFO) Name() string { return c.name }

// Done implements [DoneChecker]: the channel is closed when the queue has synced.
func (c *commonFIFO) Done() <-chan struct{} { return c.synced }

// HasSynced implements [Queue].
func (c *commonFIFO) HasSynced() bool { return IsDone(c) }

// HasSyncedChecker implements [Queue].
func (c *commonFIFO) HasSyncedChecker() DoneChecker { return c }

// Transformer tells the reflector what happens to objects here, so that it can do the same to those it holds back.
func (c *commonFIFO) Transformer() reflector.TransformFunc { return c.transformer }

// Snapshot implements [Queue]. It takes no lock: DeltaFIFO holds its own for as long as a delta is processed.
func (c *commonFIFO) Snapshot() Snapshot {
	return Snapshot{Kind: c.kind, Len: int(c.queued.Load()), Synced: c.HasSynced()}
}

// lock takes mu for a writer, and reports if it has to wait. It waits while a delta is processed under the lock: in
// DeltaFIFO that is always the case, in RealFIFO only when very much is queued.
func (c *commonFIFO) lock() {
	if c.mu.TryLock() {
		return
	}
	c.probe.At(probe.FIFOLockWaited, "", 0)
	c.mu.Lock()
	c.probe.At(probe.FIFOLockTaken, "", 0)
}

// waitForItemLocked lets the consumer sleep until something is queued or the queue is closed.
func (c *commonFIFO) waitForItemLocked() {
	c.probe.At(probe.FIFOWaited, "", 0)
	c.cond.Wait()
}

// Close implements [Queue].
func (c *commonFIFO) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.probe.At(probe.FIFOClosed, "", 0)
	c.cond.Broadcast() // a Pop that waits must see it
}

// prepare makes a delta of obj: transformed, and with the key of what became of it.
// A tombstone and an object of our own store (Sync) have been transformed before.
//
// Differs: runs before the lock is taken; upstream transforms under it.
// Differs: the key is that of the transformed object, so an object whose transformation has no
// key is refused here; upstream asks for the key before and stumbles when the delta is
// processed.
func (c *commonFIFO) prepare(deltaType DeltaType, obj any) (Delta, error) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return Delta{Type: deltaType, Object: obj, Key: tombstone.Key}, nil
	}
	if c.transformer != nil && deltaType != Sync {
		transformed, err := c.transformer(obj)
		if err != nil {
			return Delta{}, err
		}
		obj = transformed
	}
	key, err := c.keyFunc(obj)
	if err != nil {
		return Delta{}, KeyError{Obj: obj, Err: err}
	}
	return Delta{Type: deltaType, Object: obj, Key: key}, nil
}

// prepareAll is prepare for a list: all of it or nothing.
func (c *commonFIFO) prepareAll(deltaType DeltaType, list []any) ([]Delta, error) {
	deltas := make([]Delta, 0, len(list))
	for _, obj := range list {
		delta, err := c.prepare(deltaType, obj)
		if err != nil {
			return nil, err
		}
		deltas = append(deltas, delta)
	}
	return deltas, nil
}

// populatedLocked notes that the queue has been written to, the first time with n items of a first list.
func (c *commonFIFO) populatedLocked(n int) {
	if c.populated {
		return
	}
	c.populated = true
	c.initialPopulationCount = n
	c.checkSyncedLocked()
}

// processedLocked notes that n items have been processed.
func (c *commonFIFO) processedLocked(n int) {
	if c.initialPopulationCount == 0 {
		return
	}
	c.initialPopulationCount -= n
	c.checkSyncedLocked()
}

// checkSyncedLocked closes synced when nothing of the first list is left.
func (c *commonFIFO) checkSyncedLocked() {
	if c.populated && c.initialPopulationCount == 0 && !c.HasSynced() {
		close(c.synced)
	}
}

// addedLocked wakes the consumer and reports that delta waits; queued deltas do now.
func (c *commonFIFO) addedLocked(delta *Delta, queued int) {
	c.queued.Store(int64(queued))
	c.cond.Signal()     // one consumer: no need to wake more
	if c.probe != nil { // a version is not read for free
		c.probe.Event(probe.FIFOAdded, string(delta.Type), delta.Key, VersionOf(delta.Object), queued, 0)
	}
}

// poppedLocked reports that taken have left, one by one; queued deltas still wait.
func (c *commonFIFO) poppedLocked(taken []Delta, queued int) {
	c.queued.Store(int64(queued))
	if c.probe == nil {
		return
	}
	for i := range taken {
		left := queued + len(taken) - 1 - i
		c.probe.Event(probe.FIFOPopped, string(taken[i].Type), taken[i].Key, VersionOf(taken[i].Object), left, 0)
	}
}

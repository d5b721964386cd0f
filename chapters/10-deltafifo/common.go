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
	// Set by init, never changed.
	kind        string
	transformer reflector.TransformFunc // nil: objects are stored as they come
	probe       *probe.Probe
	synced      chan struct{} // closed by checkSyncedLocked, once; nothing is sent

	queued atomic.Int64 // deltas that wait; written under mu, read by Snapshot without it

	// guards the fields below and the items of the queue; taken before the store's lock
	mu                     sync.Mutex
	cond                   sync.Cond // on mu: there may be an item now, or the queue is closed
	populated              bool
	initialPopulationCount int // items of the first Replace that are not processed yet
	closed                 bool
}

// init is called once, by the constructor of the queue.
func (c *commonFIFO) init(kind string, transformer reflector.TransformFunc, p *probe.Probe) {
	c.kind, c.transformer, c.probe = kind, transformer, p
	c.synced = make(chan struct{})
	c.cond.L = &c.mu
}

func (c *commonFIFO) HasSynced() bool { return IsDone(c.synced) }

func (c *commonFIFO) HasSyncedChecker() <-chan struct{} { return c.synced }

// Transformer tells the reflector what happens to objects here, so that it can do the same to those it holds back.
func (c *commonFIFO) Transformer() reflector.TransformFunc { return c.transformer }

// Snapshot implements [Queue]. It takes no lock: DeltaFIFO holds its own for as long as a delta is processed.
func (c *commonFIFO) Snapshot() Snapshot {
	return Snapshot{Kind: c.kind, Len: int(c.queued.Load()), Synced: c.HasSynced()}
}

// waitForItemLocked lets the consumer sleep until something is queued. The error is [ErrFIFOClosed] once the queue is
// closed and empty.
func (c *commonFIFO) waitForItemLocked() error {
	for c.queued.Load() == 0 {
		if c.closed {
			return ErrFIFOClosed
		}
		c.probe.At(probe.FIFOWaited, "", 0)
		c.cond.Wait()
	}
	return nil
}

func (c *commonFIFO) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.probe.At(probe.FIFOClosed, "", 0)
	c.cond.Broadcast() // a Pop that waits must see it
}

// prepare makes a delta of obj: transformed, and with the key of what became of it. The object
// of a tombstone has been transformed before.
//
// Differs: runs before the lock is taken; upstream transforms under it. One fixed key function.
// Differs: the key is that of the transformed object, so an object whose transformation has no
// key is refused here; upstream asks for the key before and stumbles at the processing.
func (c *commonFIFO) prepare(deltaType DeltaType, obj any) (Delta, error) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return Delta{Type: deltaType, Object: obj, Key: tombstone.Key}, nil
	}
	if c.transformer != nil {
		transformed, err := c.transformer(obj)
		if err != nil {
			return Delta{}, err
		}
		obj = transformed
	}
	key, err := reflector.MetaNamespaceKeyFunc(obj)
	return Delta{Type: deltaType, Object: obj, Key: key}, err
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

// addedLocked wakes the consumer and reports that delta waits: change more than before, which is 0 if it was merged.
func (c *commonFIFO) addedLocked(delta *Delta, change int) {
	queued := int(c.queued.Add(int64(change)))
	c.cond.Signal()     // one consumer: no need to wake more
	if c.probe != nil { // a version is not read for free
		c.probe.Event(probe.FIFOAdded, string(delta.Type), delta.Key, VersionOf(delta.Object), queued, 0)
	}
}

// poppedLocked reports that taken have left, one by one.
func (c *commonFIFO) poppedLocked(taken Deltas) {
	left := int(c.queued.Add(-int64(len(taken)))) + len(taken)
	if c.probe == nil {
		return
	}
	for i := range taken {
		left--
		c.probe.Event(probe.FIFOPopped, string(taken[i].Type), taken[i].Key, VersionOf(taken[i].Object), left, 0)
	}
}

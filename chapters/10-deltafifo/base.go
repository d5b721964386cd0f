package deltafifo

import (
	"sync"
	"sync/atomic"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/probe"
)

// base is what both queues consist of besides their items: the lock, the wait for items, and the knowledge of when
// the first list has been dealt with. A queue is
//
//   - populated once the first Replace, Add, Update or Delete has happened,
//   - synced once it is populated and none of the items of that first Replace is left.
//
// A queue whose first call is not Replace is synced at once: there is no first list to wait for.
type base struct {
	// Set by the constructor, never changed.
	name         string
	kind         string
	keyFunc      reflector.KeyFunc
	knownObjects KeyListerGetter         // nil: only what is queued is known
	transformer  reflector.TransformFunc // nil: objects are stored as they come
	probe        *probe.Probe
	synced       chan struct{} // closed by checkSyncedLocked, once; nothing is sent

	queued atomic.Int64 // deltas that wait; written under mu, read by Snapshot without it

	mu                     sync.Mutex // guards the fields below and the items of the queue; taken before the store's lock
	cond                   sync.Cond  // on mu: there may be an item now, or the queue is closed
	populated              bool
	initialPopulationCount int // items of the first Replace that are not dealt with yet
	closed                 bool
}

func (b *base) init(kind, name string) {
	b.kind = kind
	b.name = name
	if b.keyFunc == nil {
		b.keyFunc = reflector.MetaNamespaceKeyFunc
	}
	b.synced = make(chan struct{})
	b.cond.L = &b.mu
}

// Name implements [DoneChecker].
func (b *base) Name() string { return b.name }

// Done implements [DoneChecker]: the channel is closed when the queue has synced.
func (b *base) Done() <-chan struct{} { return b.synced }

// HasSynced implements [Queue].
func (b *base) HasSynced() bool { return IsDone(b) }

// HasSyncedChecker implements [Queue].
func (b *base) HasSyncedChecker() DoneChecker { return b }

// Transformer tells the reflector what happens to objects here, so that it can do the same to those it holds back.
func (b *base) Transformer() reflector.TransformFunc { return b.transformer }

// Snapshot implements [Queue]. It takes no lock: DeltaFIFO holds its own for as long as a delta is processed.
func (b *base) Snapshot() Snapshot {
	return Snapshot{Kind: b.kind, Len: int(b.queued.Load()), Synced: b.HasSynced()}
}

// lock takes mu for a writer. It has to wait while a delta is processed under the lock: in DeltaFIFO that is always the
// case, in RealFIFO only when very much is queued.
func (b *base) lock() {
	if !b.mu.TryLock() {
		b.waitForLock()
	}
}

func (b *base) waitForLock() {
	b.probe.At(probe.FIFOLockWaited, "", 0)
	b.mu.Lock()
	b.probe.At(probe.FIFOLockTaken, "", 0)
}

// waitForItemLocked lets the consumer sleep until something is queued or the queue is closed. It expects mu.
func (b *base) waitForItemLocked() {
	b.probe.At(probe.FIFOWaited, "", 0)
	b.cond.Wait()
}

// Close implements [Queue].
func (b *base) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.probe.At(probe.FIFOClosed, "", 0)
	b.cond.Broadcast() // whoever waits in Pop must see it
}

// prepare makes a delta of obj: transformed, and with the key of what became of it.
// A tombstone and an object of our own store (Sync) have been transformed before.
//
// Differs: runs before the lock is taken; upstream transforms under it.
// Differs: the key is that of the transformed object, so an object whose transformation has no key is refused here;
// upstream asks for the key before and stumbles when the delta is processed.
func (b *base) prepare(deltaType DeltaType, obj any) (Delta, error) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return Delta{Type: deltaType, Object: obj, Key: tombstone.Key}, nil
	}
	if b.transformer != nil && deltaType != Sync {
		transformed, err := b.transformer(obj)
		if err != nil {
			return Delta{}, err
		}
		obj = transformed
	}
	key, err := b.keyFunc(obj)
	if err != nil {
		return Delta{}, KeyError{Obj: obj, Err: err}
	}
	return Delta{Type: deltaType, Object: obj, Key: key}, nil
}

// prepareAll is prepare for a list: all of it or nothing.
func (b *base) prepareAll(deltaType DeltaType, list []any) ([]Delta, error) {
	deltas := make([]Delta, 0, len(list))
	for _, obj := range list {
		delta, err := b.prepare(deltaType, obj)
		if err != nil {
			return nil, err
		}
		deltas = append(deltas, delta)
	}
	return deltas, nil
}

// populatedLocked notes that the queue has been written to, the first time with n items of a first list. It expects mu.
func (b *base) populatedLocked(n int) {
	if b.populated {
		return
	}
	b.populated = true
	b.initialPopulationCount = n
	b.checkSyncedLocked()
}

// dealtWithLocked notes that n items have left the queue for good. It expects mu.
func (b *base) dealtWithLocked(n int) {
	if b.initialPopulationCount == 0 {
		return
	}
	b.initialPopulationCount -= n
	b.checkSyncedLocked()
}

// checkSyncedLocked closes synced when its time has come. It expects mu.
func (b *base) checkSyncedLocked() {
	if b.populated && b.initialPopulationCount == 0 && !b.HasSynced() {
		close(b.synced)
	}
}

// addedLocked wakes the consumer and reports that delta waits; queued deltas do now. It expects mu.
func (b *base) addedLocked(delta *Delta, queued int) {
	b.queued.Store(int64(queued))
	b.cond.Signal() // one consumer: no need to wake more
	if b.probe == nil {
		return // working out the resource version is not free
	}
	_, rv := Identify(delta.Object)
	b.probe.Event(probe.FIFOAdded, string(delta.Type), delta.Key, rv, queued, 0)
}

// poppedLocked reports that taken have left, one by one; queued deltas still wait. It expects mu.
func (b *base) poppedLocked(taken []Delta, queued int) {
	b.queued.Store(int64(queued))
	if b.probe == nil {
		return
	}
	for i := range taken {
		left := queued + len(taken) - 1 - i
		_, rv := Identify(taken[i].Object)
		b.probe.Event(probe.FIFOPopped, string(taken[i].Type), taken[i].Key, rv, left, 0)
	}
}

package deltafifo

// defaultBatchSize is the most deltas one PopBatch takes. While twice as many wait, RealFIFO keeps its lock during
// processing, so that the reflector, and through TCP the server, waits for the handlers' side to catch up.
const defaultBatchSize = 1000

// Pop takes the oldest delta and processes it. The queue counts as synced after the last item of the first list has
// been processed, not before.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).Pop
func (f *RealFIFO) Pop(process PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(); err != nil {
		return err
	}
	return f.processLocked(1, process)
}

// PopBatch takes the longest run of deltas that may be applied together, see batchLocked.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).PopBatch
func (f *RealFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(); err != nil {
		return err
	}
	n := f.batchLocked()
	if n == 1 {
		return f.processLocked(1, processSingle)
	}
	return f.processLocked(n, func(deltas Deltas, isInInitialList bool) error {
		return processBatch(deltas, isInInitialList)
	})
}

// waitLocked returns when there is an item. It expects mu, and lets go of it while it waits.
func (f *RealFIFO) waitLocked() error {
	for len(f.items) == 0 {
		if f.closed {
			return ErrFIFOClosed
		}
		f.waitForItemLocked()
	}
	return nil
}

// batchLocked returns how many items the next batch has, at least 1. The batch ends before
//
//   - the second delta of a key, so that each has one "before" and one "after" in the store,
//   - a delta that concerns more than one key (or none), unless it is the first, and then it is alone,
//   - the end of the first list, so that isInInitialList is true for all of it or none.
//
// It expects mu.
func (f *RealFIFO) batchLocked() int {
	limit := min(len(f.items), defaultBatchSize)
	if f.initialPopulationCount > 0 {
		limit = min(limit, f.initialPopulationCount)
	}
	if limit == 1 {
		return 1
	}
	clear(f.unique)
	for i := range limit {
		delta := &f.items[i]
		if !batchable(delta.Type) {
			return max(i, 1)
		}
		if _, seen := f.unique[delta.Key]; seen {
			return i
		}
		f.unique[delta.Key] = struct{}{}
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

// processLocked takes the first n items and processes them. It expects mu, and lets go of it while process runs if it
// may and if fewer than two batches wait behind them.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: (*RealFIFO).whileProcessing_locked
func (f *RealFIFO) processLocked(n int, process PopProcessFunc) error {
	isInInitialList := !f.HasSynced()
	// Not a copy: the items stay where they are, in slots that no append can reach any more.
	batch := f.items[:n:n]
	f.items = f.items[n:]
	f.poppedLocked(batch, len(f.items))
	// After processing, because a handler that asks HasSynced must not hear yes while it is still at work.
	defer f.processedLocked(batch)
	if f.unlockWhileProcessing && len(f.items) < 2*defaultBatchSize {
		f.mu.Unlock()
		defer f.mu.Lock()
	}
	return process(batch, isInInitialList)
}

// processedLocked lets go of the objects of batch and, if nothing waits, begins again at the start of the array. It
// expects mu.
func (f *RealFIFO) processedLocked(batch []Delta) {
	clear(batch)
	f.dealtWithLocked(len(batch))
	if len(f.items) > 0 {
		return
	}
	if cap(f.start) > 2*defaultBatchSize {
		f.start = nil // grown in a burst: not worth keeping
	}
	f.items = f.start
}

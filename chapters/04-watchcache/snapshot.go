package watchcache

import "listwatch/internal/observe/probe"

// Snapshot is the state of a [WatchCache], for the page.
type Snapshot struct {
	Start               int    `json:"start"` // absolute positions: the ring holds [start, end)
	End                 int    `json:"end"`
	Capacity            int    `json:"capacity"`
	OldestRV            uint64 `json:"oldestRV"`        // first event in the ring, 0 if it is empty
	ResourceVersion     uint64 `json:"resourceVersion"` // how far the cache is
	ListResourceVersion uint64 `json:"listResourceVersion"`
	Objects             int    `json:"objects"`
	Snapshots           int    `json:"snapshots"` // states that can be listed exactly
	Waiting             int    `json:"waiting"`   // readers that wait for a version
	EventsReceived      int64  `json:"eventsReceived"`
	CapacityIncreases   int    `json:"capacityIncreases"`
	CapacityDecreases   int    `json:"capacityDecreases"`
	CompactRevision     uint64 `json:"compactRevision"` // the storage has forgotten what is older
}

// Recount reports every object that the store holds, if it holds at most limit: for a picture that had kept their
// number only. No change comes in between, because all of them are reported under mu.
//
// Differs: upstream draws no picture.
func (w *WatchCache) Recount(limit int) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	n := w.store.state.tree.Len()
	if n > limit {
		return
	}
	for e := range w.store.state.orderedListPrefix("", "") {
		rv, err := w.versioner.ObjectResourceVersion(e.Object)
		if err != nil {
			continue // it was stored with a version
		}
		w.config.Probe.At(probe.StoreHolds, e.Key, rv, n)
	}
}

// Snapshot returns the state under one short lock.
func (w *WatchCache) Snapshot() Snapshot {
	waiting := w.wakeups.Waiting()
	w.mu.RLock()
	defer w.mu.RUnlock()
	return Snapshot{
		Start:               w.history.startIndex,
		End:                 w.history.endIndex,
		Capacity:            len(w.history.cache),
		OldestRV:            w.history.oldestLocked(),
		ResourceVersion:     w.resourceVersion,
		ListResourceVersion: w.listVersion,
		Objects:             w.store.state.tree.Len(),
		Snapshots:           len(w.snapshots.snapshots),
		Waiting:             waiting,
		EventsReceived:      w.received.Load(),
		CapacityIncreases:   w.history.increases,
		CapacityDecreases:   w.history.decreases,
		CompactRevision:     w.snapshots.compactRevision,
	}
}

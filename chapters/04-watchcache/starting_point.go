package watchcache

import (
	storage "listwatch/chapters/01-storage"
)

// BeginWatch chooses the starting point of a new watch of key from rv, and registers the watch
// before the cache can change: an event is then either in the interval, or comes after and is
// dispatched to the watch. register gets the cache's version. It must neither wait nor call
// the cache. The error is that of the choice: 410 Expired; then register is not called.
func (w *WatchCache) BeginWatch(
	rv uint64, key string, opts storage.ListOptions,
	register func(interval *Interval, current uint64),
) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	interval, err := w.intervalSinceLocked(rv, key, opts)
	if err == nil {
		register(interval, w.resourceVersion)
	}
	return err
}

// intervalSinceLocked returns what a watch of key from rv begins with: the current state if it
// asked for initial events, or if it named no version (rv 0) and did not refuse them; otherwise
// the events in (rv, newest]. The error is 410 Expired if the ring no longer holds them all.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).getAllEventsSinceLocked
func (w *WatchCache) intervalSinceLocked(
	rv uint64, key string, opts storage.ListOptions,
) (*Interval, error) {
	initial := opts.SendInitialEvents
	switch {
	case initial != nil && *initial, initial == nil && rv == 0:
		return w.stateIntervalLocked(key, opts.Recursive), nil
	case rv == 0:
		rv = w.resourceVersion // "from any version, but without the state": from now
	}
	return w.history.intervalLocked(rv, w.listVersion, w.mu.RLocker())
}

// stateIntervalLocked costs the same for ten objects and for a million: it keeps a state, and
// the reader of the interval expands it later, without the lock.
func (w *WatchCache) stateIntervalLocked(key string, recursive bool) *Interval {
	source := &storeSource{state: w.store.state, prefix: key, resourceVersion: w.resourceVersion}
	if !recursive {
		source.state = newBtreeStore() // of the one object, if there is one
		if element := w.store.state.getByKey(key); element != nil {
			source.state = newBtreeStore(element)
		}
	}
	return &Interval{source: source, ResourceVersion: w.resourceVersion}
}

// SuggestedWatchChannelSize returns how large a watcher's channels should be: about one second of events at the current
// rate, between 10 and a limit that depends on how much of the resource it will see. indexExists says that the resource
// has a trigger index, triggerUsed that this watcher uses it.
func (w *WatchCache) SuggestedWatchChannelSize(indexExists, triggerUsed bool) int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.history.suggestedWatchChannelSizeLocked(indexExists, triggerUsed)
}

// ListResourceVersion returns the version of the last Replace, 0 before the first.
func (w *WatchCache) ListResourceVersion() uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.listVersion
}

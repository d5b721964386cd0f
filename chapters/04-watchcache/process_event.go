package watchcache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/observe/probe"
)

// processEvent takes one change through the cache: first it becomes an [Event], which needs no
// lock, then ring and store change under the lock, then the handler hears of it, without the
// lock. There is one writer, so no other event can come between these steps.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).processEvent
// Differs: the event's time is that of its arrival here; upstream carries the time of parsing
// along from the etcd watch.
func (w *WatchCache) processEvent(typ watch.EventType, obj any) error {
	w.received.Add(1)
	object, ok := obj.(runtime.Object)
	if !ok {
		return fmt.Errorf("process %s: %T is not an object", typ, obj)
	}
	element, err := w.newElement(object)
	if err != nil {
		return fmt.Errorf("process %s: %w", typ, err)
	}
	event, err := w.newEvent(typ, element)
	if err != nil {
		return fmt.Errorf("process %s: %w", typ, err)
	}
	if err := w.apply(event, element); err != nil { // takes and releases w.mu
		return err
	}

	// Not under the lock: the handler blocks when the dispatcher is behind, and a holder of
	// this lock would then stop every list and every new watch with it. The order is safe,
	// because there is only one writer: the next event is not applied before this call returns.
	w.config.EventHandler(event)
	return nil
}

// newEvent joins the new state with the previous one.
func (w *WatchCache) newEvent(typ watch.EventType, element *Element) (*Event, error) {
	rv, err := w.versioner.ObjectResourceVersion(element.Object)
	if err != nil {
		return nil, err
	}
	event := &Event{
		Type:            typ,
		Object:          element.Object,
		ObjLabels:       element.Labels,
		ObjFields:       element.Fields,
		Key:             element.Key,
		ResourceVersion: rv,
		RecordTime:      w.config.Clock.Now(),
	}
	// Without the lock: only this goroutine ever changes the store, so none writes while it
	// reads.
	previous, _ := w.store.elements.tree.Get(element)
	if previous == nil {
		return event, nil
	}
	event.PrevObject = previous.Object
	event.PrevObjLabels = previous.Labels
	event.PrevObjFields = previous.Fields
	if typ == watch.Deleted {
		// A watcher that resumes from the version of the last event it saw must not be sent the
		// deletion again, so a deleted object carries the version of its deletion. In a copy:
		// lists and other watchers are reading the original.
		event.PrevObject, err = w.versioner.Stamped(previous.Object, rv)
	}
	return event, err
}

// apply makes the event visible, as one step for every goroutine that takes the lock. The error
// is 410 for an event that is older than the newest; then nothing has changed.
func (w *WatchCache) apply(event *Event, element *Element) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.history.checkLocked(event); err != nil {
		return err
	}
	// No reader is missed. One that has found the old version is on Cond.Wait's list before it
	// lets go of the lock, and the version changes under the lock. So this call may come before
	// the lock is released or after.
	defer w.cond.Broadcast()

	// The ring first, then the version, then the store. Under one lock the order is invisible
	// to readers; it is the order of the promise: a version is claimed only when the event that
	// made it can be replayed.
	w.history.appendLocked(event)
	w.resourceVersion = event.ResourceVersion
	if w.history.isFullLocked() {
		w.snapshots.removeLessLocked(w.history.oldestLocked())
	}
	w.updateStoreLocked(event, element)
	return nil
}

// updateStoreLocked changes the store and remembers the state. The caller holds w.mu for writing.
func (w *WatchCache) updateStoreLocked(event *Event, element *Element) {
	if event.Type == watch.Deleted {
		w.store.deleteLocked(element.Key)
	} else {
		w.store.setLocked(element)
	}
	w.snapshots.addLocked(event.ResourceVersion, w.store.state)
	n := w.store.state.tree.Len()
	w.config.Probe.Event(probe.StoreUpdate, string(event.Type), event.Key, event.ResourceVersion, n)
}

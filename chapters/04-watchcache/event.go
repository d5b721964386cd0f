package watchcache

import (
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is one change, with everything a watcher needs to decide what the change means to it:
// the state before and the state after, and what selectors may see of both. Labels and fields
// are computed once, here, not per watcher.
//
// An Event never changes once it is in the ring: the ring, open intervals and every watcher's
// channel share it.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: watchCacheEvent
// Differs: PrevObject of a deletion is a copy already stamped with the resource version of the
// deletion, made once in [WatchCache.processEvent]; upstream stamps it once when dispatched and
// again for every watcher that replays it.
type Event struct {
	// ADDED, MODIFIED, DELETED; BOOKMARK for an event that only carries a resource version.
	Type      watch.EventType
	Object    runtime.Object // the new state; for DELETED what the storage sent along
	ObjLabels labels.Set
	ObjFields fields.Fields

	PrevObject    runtime.Object // the state before, nil if there was none
	PrevObjLabels labels.Set
	PrevObjFields fields.Fields

	Key             string // "/registry/pods/default/a"; "" for a bookmark
	ResourceVersion uint64
	RecordTime      time.Time // when the cache received it; the ring is resized by it
}

// Element is one object as the store keeps it. It never changes; an update puts another Element in its place.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store.go: Element
type Element struct {
	Key    string
	Object runtime.Object
	Labels labels.Set
	Fields fields.Fields
}

// added returns the event by which a watcher that begins with the current state learns of e. The event carries rv,
// the version of the whole state, while the object keeps its own.
func (e *Element) added(rv uint64) *Event {
	return &Event{
		Type:            watch.Added,
		Object:          e.Object,
		ObjLabels:       e.Labels,
		ObjFields:       e.Fields,
		Key:             e.Key,
		ResourceVersion: rv,
	}
}

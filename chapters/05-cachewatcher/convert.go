package cachewatcher

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
)

// Filter is what a watcher wants to see: objects at Key or below it that Predicate selects.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: filterWithAttrsAndPrefixFunction
type Filter struct {
	Key       string // "/registry/pods/", "/registry/pods/default/" or "/registry/pods/default/a"
	Predicate storage.SelectionPredicate
}

// Matches reports whether an object is wanted. The attributes are those the cache has computed.
func (f *Filter) Matches(key string, l labels.Set, fields fields.Fields) bool {
	return storage.HasPathPrefix(key, f.Key) && f.Predicate.MatchesObjectAttributes(l, fields)
}

// convertToWatchEvent decides what event means to this watcher. What happened in the storage
// does not matter; what matters is whether the object was there for this watcher before, and
// whether it is there now:
//
//	before  now   sent
//	no      no    nothing
//	no      yes   ADDED     the new object
//	yes     yes   MODIFIED  the new object
//	yes     no    DELETED   the old object, with the resource version of this event
//
// A pod that is bound to a node is ADDED for that node's kubelet, though it was created long
// ago; a pod whose label is taken away is DELETED for watchers that select by that label,
// though it lives on.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).convertToWatchEvent
func (w *CacheWatcher) convertToWatchEvent(
	event *watchcache.Event,
) (out watch.Event, wanted bool) {
	if event.Type == watch.Bookmark {
		return w.convertBookmark(event), true
	}
	now := event.Type != watch.Deleted &&
		w.filter.Matches(event.Key, event.ObjLabels, event.ObjFields)
	before := event.PrevObject != nil &&
		w.filter.Matches(event.Key, event.PrevObjLabels, event.PrevObjFields)
	switch {
	case now && before:
		return watch.Event{Type: watch.Modified, Object: event.Object}, true
	case now:
		return watch.Event{Type: watch.Added, Object: event.Object}, true
	case before:
		return watch.Event{Type: watch.Deleted, Object: w.lastState(event)}, true
	}
	return watch.Event{}, false
}

// lastState returns the object as the watcher knew it, with the version at which it went. A deletion has it ready; when
// an object merely stops matching, this watcher makes its own copy, which is rare enough.
func (w *CacheWatcher) lastState(event *watchcache.Event) runtime.Object {
	if event.Type == watch.Deleted {
		return event.PrevObject
	}
	obj, err := w.versioner.Stamped(event.PrevObject, event.ResourceVersion)
	if err != nil {
		// The cache has read this object's metadata before: it has some.
		panic(fmt.Sprintf("cacheWatcher: stamp %s with %d: %v", event.Key, event.ResourceVersion, err))
	}
	return obj
}

// convertBookmark copies the bookmark, which all watchers share, if this watcher has to mark its own: the first one of
// a watcher that waits for the end of its initial events carries an annotation that says so.
func (w *CacheWatcher) convertBookmark(event *watchcache.Event) watch.Event {
	if w.bookmarkState() == bookmarkSent {
		return watch.Event{Type: watch.Bookmark, Object: event.Object}
	}
	obj := event.Object.DeepCopyObject()
	if err := storage.AnnotateInitialEventsEndBookmark(obj); err != nil {
		panic(fmt.Sprintf("cacheWatcher: a bookmark of type %T has no metadata: %v", obj, err))
	}
	return watch.Event{Type: watch.Bookmark, Object: obj}
}

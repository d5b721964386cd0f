package etcd3

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
)

// transform returns the event for a watcher with this predicate; nil: none. Its type depends on
// whether the object matched before and matches now, not on what was done to the object:
//
//	etcd        matched before   matches now   watcher sees
//	progress                                   BOOKMARK, an object with only a version
//	create                       yes           ADDED
//	put         no               yes           ADDED
//	put         yes              yes           MODIFIED
//	put         yes              no            DELETED, the previous object at this revision
//	delete      yes                            DELETED, the previous object at this revision
//	otherwise                                  nothing
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*watchChan).transform
func (s *stream) transform(e *event) (*watch.Event, error) {
	switch {
	case e.err != nil:
		return nil, e.err
	case e.isProgressNotify:
		return s.bookmark(e)
	}
	current, old, err := s.prepareObjs(e)
	if err != nil {
		return nil, err
	}
	// A nil object matches nothing. With a predicate that accepts all, the previous object was
	// not even decoded for a put: it has matched.
	isMatch := current != nil && s.filter(current)
	wasMatch := old != nil && s.filter(old) || s.opts.Predicate.Empty() && !e.isCreated
	switch {
	case isMatch && wasMatch:
		return &watch.Event{Type: watch.Modified, Object: current}, nil
	case isMatch:
		return &watch.Event{Type: watch.Added, Object: current}, nil
	case wasMatch:
		return &watch.Event{Type: watch.Deleted, Object: old}, nil
	default:
		return nil, nil
	}
}

// bookmark returns the event that reports progress up to a revision.
func (s *stream) bookmark(e *event) (*watch.Event, error) {
	obj := s.store.newFunc()
	if err := s.store.versioner.UpdateObject(obj, uint64(e.rev)); err != nil {
		return nil, err
	}
	if e.isInitialEventsEndBookmark {
		if err := storage.AnnotateInitialEventsEndBookmark(obj); err != nil {
			return nil, err
		}
	}
	return &watch.Event{Type: watch.Bookmark, Object: obj}, nil
}

// filter reports whether the watch's predicate matches. An object for which the predicate returns an error does not
// match.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*watchChan).filter
func (s *stream) filter(obj runtime.Object) bool {
	matched, err := s.opts.Predicate.Matches(obj)
	return err == nil && matched
}

// prepareObjs decodes the new state, nil if the object was deleted, and the old state, nil if it is not needed: for a
// put only a predicate needs it. The old state gets the revision of the change that ended it.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: (*watchChan).prepareObjs
func (s *stream) prepareObjs(e *event) (current, old runtime.Object, err error) {
	if !e.isDeleted {
		current, err = s.decodeObj(e.key, e.value, e.rev)
		if err != nil {
			return nil, nil, err
		}
	}
	if e.isDeleted || len(e.prevValue) > 0 && !s.opts.Predicate.Empty() {
		old, err = s.decodeObj(e.key, e.prevValue, e.rev)
		if err != nil && e.isDeleted {
			err = corruptObjectDeletedError(err)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return current, old, nil
}

// decodeObj decodes stored bytes into a new object.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: decodeObj
func (s *stream) decodeObj(key string, data []byte, rev int64) (runtime.Object, error) {
	obj := s.store.newFunc()
	return obj, s.store.decode(key, data, rev, obj)
}

package etcd3

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// sendAdd sends ADDED for a key that has come into being, if it matches.
func (w *etcdWatcher) sendAdd(ctx context.Context, e *event) {
	obj, ok := w.decodeOrSkip(e, e.value)
	if !ok || !w.filter(obj) {
		return
	}
	w.send(ctx, &watch.Event{Type: watch.Added, Object: obj}, e.key, e.rev)
}

// sendModify compares what the predicate says of the new state and of the old. An old state that does not decode counts
// as one that did not match.
func (w *etcdWatcher) sendModify(ctx context.Context, e *event) {
	current, ok := w.decodeOrSkip(e, e.value)
	if !ok {
		return
	}
	old, ok := w.decodeOrSkip(e, e.prevValue)
	isMatch := w.filter(current)
	wasMatch := ok && w.filter(old)
	switch {
	case isMatch && wasMatch:
		w.send(ctx, &watch.Event{Type: watch.Modified, Object: current}, e.key, e.rev)
	case isMatch:
		w.send(ctx, &watch.Event{Type: watch.Added, Object: current}, e.key, e.rev)
	case wasMatch:
		w.send(ctx, &watch.Event{Type: watch.Deleted, Object: old}, e.key, e.rev)
	}
}

// sendDelete sends DELETED with the last state, at the revision of the deletion, if that state matched.
func (w *etcdWatcher) sendDelete(ctx context.Context, e *event) {
	old, ok := w.decodeOrSkip(e, e.prevValue)
	if !ok || !w.filter(old) {
		return
	}
	w.send(ctx, &watch.Event{Type: watch.Deleted, Object: old}, e.key, e.rev)
}

// sendBookmark passes progress on.
func (w *etcdWatcher) sendBookmark(ctx context.Context, e *event) {
	result, err := w.bookmark(e)
	if err != nil {
		w.sendError(ctx, err)
		return
	}
	w.send(ctx, result, e.key, e.rev)
}

// decodeOrSkip returns false for a value that does not decode, which is then as if it had never been.
func (w *etcdWatcher) decodeOrSkip(e *event, data []byte) (runtime.Object, bool) {
	obj, err := w.decodeObj(e.key, data, e.rev)
	return obj, err == nil
}

package watchcache

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	storage "listwatch/chapters/01-storage"
)

// List is what a list found before any selector was asked: everything that may match, ordered by key.
type List struct {
	Elements        []*Element // shared; the slice belongs to the caller
	ResourceVersion uint64     // the one state in which all of them were seen
	Indexed         bool       // found by the trigger's index
}

// GetList returns the elements below key, or, if the list is not recursive, the element at key.
// Which state is read follows from [storage.ValidateListOptions], as in the storage. The lock
// is held only to pick a state; the state is read without it.
//
// Errors: 504 Timeout if the cache does not reach the version within three seconds, 410 Expired
// if it no longer has the state, 400 BadRequest for a token that does not parse,
// storage.InvalidError for such a version.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).WaitUntilFreshAndGetList
func (w *WatchCache) GetList(
	ctx context.Context, key string, opts storage.ListOptions,
) (List, error) {
	rv, err := w.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return List{}, err
	}
	if !opts.Recursive {
		return w.getSingle(ctx, key, rv, opts)
	}
	withRev, from, err := storage.ValidateListOptions(key, opts)
	if err != nil {
		return List{}, err
	}
	pred := &opts.Predicate
	switch {
	case withRev > 0:
		return w.listExact(ctx, key, from, uint64(withRev))
	case from != "":
		all := &storage.SelectionPredicate{} // the index knows no order to continue in
		return w.listConsistent(ctx, key, from, all)
	case opts.ResourceVersion == "" && opts.ResourceVersionMatch == "":
		return w.listConsistent(ctx, key, "", pred)
	}
	return w.listLatest(ctx, key, "", rv, pred)
}

// listExact reads the state at rv, or returns 410. A state that lasted from 5 to 9 is the state at 7, labelled 7.
func (w *WatchCache) listExact(ctx context.Context, key, from string, rv uint64) (List, error) {
	state, err := w.snapshotAt(ctx, key, rv)
	if err != nil {
		return List{}, err
	}
	return List{Elements: slices.Collect(state.orderedListPrefix(key, from)), ResourceVersion: rv}, nil
}

func (w *WatchCache) snapshotAt(ctx context.Context, key string, rv uint64) (btreeStore, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if err := w.waitUntilFreshLocked(ctx, key, rv); err != nil {
		return btreeStore{}, err
	}
	state, ok := w.snapshots.lessOrEqualLocked(rv)
	if !ok {
		return btreeStore{}, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d", rv))
	}
	return state, nil
}

// listConsistent reads a state that is as new as the storage was when the request came: one small read there says how
// far that is, and then the cache is waited for.
func (w *WatchCache) listConsistent(ctx context.Context, key, from string,
	pred *storage.SelectionPredicate) (List, error) {
	rv, err := w.config.GetCurrentResourceVersion(ctx)
	if err != nil {
		return List{}, err
	}
	return w.listLatest(ctx, key, from, rv, pred)
}

// listLatest reads the newest state, which must have reached rv. The index narrows it down if pred pins the trigger's
// field: it has everything that matches, and may have more, so the caller still asks pred. Exact lists do not come
// here, and further pages come without a selector.
func (w *WatchCache) listLatest(ctx context.Context, key, from string, rv uint64,
	pred *storage.SelectionPredicate) (List, error) {
	list, state, err := w.latest(ctx, key, rv, pred)
	if err != nil {
		return List{}, err
	}
	if list.Indexed {
		list.Elements = sortedBelow(list.Elements, key)
	} else {
		list.Elements = slices.Collect(state.orderedListPrefix(key, from))
	}
	return list, nil
}

// latest picks, under the lock, the newest state, and the elements of the index if that serves.
func (w *WatchCache) latest(ctx context.Context, key string, rv uint64,
	pred *storage.SelectionPredicate) (List, btreeStore, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if err := w.waitUntilFreshLocked(ctx, key, rv); err != nil {
		return List{}, btreeStore{}, err
	}
	if w.listVersion == 0 {
		return List{}, btreeStore{}, fmt.Errorf("list %s: the cache has not been filled yet", key)
	}
	list := List{ResourceVersion: w.resourceVersion}
	value, pinned := w.config.Trigger.PinnedBy(pred)
	if pinned {
		list.Elements, list.Indexed = w.store.byTriggerLocked(value), true
	}
	return list, w.store.state, nil
}

// getSingle is a list of one key.
func (w *WatchCache) getSingle(ctx context.Context, key string, rv uint64, opts storage.ListOptions) (List, error) {
	if opts.ResourceVersionMatch == "" && opts.ResourceVersion == "" {
		var err error
		if rv, err = w.config.GetCurrentResourceVersion(ctx); err != nil {
			return List{}, err
		}
	}
	element, readRV, err := w.Get(ctx, key, rv)
	list := List{ResourceVersion: readRV}
	if element != nil {
		list.Elements = []*Element{element}
	}
	return list, err
}

// Get returns the element at key, nil if there is none, in a state that has reached rv, and that state's version.
// Errors are those of [WatchCache.WaitUntilFresh].
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).WaitUntilFreshAndGet
func (w *WatchCache) Get(ctx context.Context, key string, rv uint64) (*Element, uint64, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if err := w.waitUntilFreshLocked(ctx, key, rv); err != nil {
		return nil, 0, err
	}
	return w.store.state.getByKey(key), w.resourceVersion, nil
}

// HasSnapshot reports whether the state at rv can be read here: false if it is gone, true also if it is yet to come.
func (w *WatchCache) HasSnapshot(rv uint64) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	_, ok := w.snapshots.lessOrEqualLocked(rv)
	return ok || rv > w.resourceVersion
}

package etcd3

import (
	"bytes"
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// initialState returns the state with which a write begins: the cache's guess if there is one, which saves a read, or
// etcd's.
//
// Differs: a guess without a resource version is no guess. Upstream takes it for the state before the first write, so
// that Delete succeeds for a key that does not exist.
func (s *Store) initialState(ctx context.Context, key string, ignoreNotFound bool,
	cached runtime.Object) (*objState, error) {
	if cached == nil {
		return s.getCurrentState(ctx, key, ignoreNotFound)
	}
	rv, err := s.versioner.ObjectResourceVersion(cached)
	if err != nil || rv == 0 {
		return s.getCurrentState(ctx, key, ignoreNotFound) // not a state that was ever stored
	}
	return s.getStateFromObject(key, cached, rv)
}

// getCurrentState reads the key.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).getCurrentState
func (s *Store) getCurrentState(ctx context.Context, key string, ignoreNotFound bool) (*objState, error) {
	response, err := s.client.Get(ctx, key, kubernetes.GetOptions{})
	if err != nil {
		return nil, interpretError(err, key)
	}
	return s.getState(key, response.KV, ignoreNotFound)
}

// refresh reads the key again if state was only a guess. changed is false if state was, or
// turns out to be, etcd's: then a conclusion from state is valid.
func (s *Store) refresh(
	ctx context.Context, key string, ignoreNotFound bool, state *objState,
) (fresh *objState, changed bool, err error) {
	if state.current {
		return state, false, nil
	}
	fresh, err = s.getCurrentState(ctx, key, ignoreNotFound)
	if err != nil {
		return nil, false, err
	}
	return fresh, fresh.rev != state.rev || !bytes.Equal(fresh.data, state.data), nil
}

// stateAfterConflict returns the state to try again with, after a transaction found kv instead of what it expected.
func (s *Store) stateAfterConflict(key string, kv *mvccpb.KeyValue, ignoreNotFound bool) (*objState, error) {
	var found int64 // 0 for a key that is gone
	if kv != nil {
		found = kv.ModRevision
	}
	s.probe.At(probe.TxnConflict, key, uint64(found))
	return s.getState(key, kv, ignoreNotFound)
}

// getState decodes etcd's value of the key. A nil kv is KeyNotFound or, with ignoreNotFound, a zero object.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).getState
func (s *Store) getState(key string, kv *mvccpb.KeyValue, ignoreNotFound bool) (*objState, error) {
	state := &objState{obj: s.newFunc(), current: true}
	if kv == nil {
		if !ignoreNotFound {
			return nil, storage.NewKeyNotFoundError(key, 0)
		}
		return state, nil
	}
	state.rev, state.data = kv.ModRevision, kv.Value
	return state, s.decode(key, state.data, state.rev, state.obj)
}

// getStateFromObject makes a cache's guess a state. The guess belongs to the cache, and others are reading it: we work
// on a copy. Its data is the form in which we would store the object. The stored bytes differ if they were written in
// another form; [Store.refresh] finds that out before a writer relies on the data.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).getStateFromObject
func (s *Store) getStateFromObject(key string, cached runtime.Object, rv uint64) (*objState, error) {
	obj := cached.DeepCopyObject()
	data, err := s.encode(key, obj)
	if err != nil {
		return nil, err
	}
	return &objState{obj: obj, rev: int64(rv), data: data}, s.versioner.UpdateObject(obj, rv)
}

// updateState returns the bytes of the next state. update may change state.obj, which is why a state is used for one
// attempt only.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).updateState
func (s *Store) updateState(key string, state *objState, preconditions *storage.Preconditions,
	update storage.UpdateFunc) ([]byte, error) {
	if err := preconditions.Check(key, state.obj); err != nil {
		return nil, err
	}
	next, err := update(state.obj)
	if err != nil {
		return nil, err
	}
	return s.encode(key, next)
}

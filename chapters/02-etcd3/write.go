package etcd3

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/etcd/client/v3/kubernetes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// All writes are optimistic: compute the new state from a state that was read, then let one transaction check that the
// key's revision is still the one that was read, and write. The writer that loses the race gets the winner's state in
// the same answer and computes again. No lock is held in between, so nothing is stuck if a writer dies.

// objState is the state from which a write starts.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: objState
type objState struct {
	obj     runtime.Object // never nil; a zero object if the key does not exist
	rev     int64          // the revision that the transaction requires; 0: the key must not exist
	data    []byte         // as stored
	current bool           // read from etcd by this write, not suggested by a cache
}

// txn is one optimistic transaction.
type txn struct {
	typ   watch.EventType // ADDED, MODIFIED or DELETED, as a watcher of all objects sees it
	key   string
	value []byte
	rev   int64 // expected
}

// Create implements [storage.Interface]. A resource version that is "0", or does not parse, is
// ignored.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).Create
// Differs: an object with a resource version gets 400; upstream's refusal becomes a 500.
func (s *Store) Create(ctx context.Context, key string, obj, out runtime.Object) error {
	key, err := storage.PrepareKey(s.resourcePrefix, key, false)
	if err != nil {
		return err
	}
	if rv, err := s.versioner.ObjectResourceVersion(obj); err == nil && rv != 0 {
		const message = "resourceVersion should not be set on objects to be created"
		return apierrors.NewBadRequest(message)
	}
	data, err := s.encode(key, obj)
	if err != nil {
		return err
	}
	response, err := s.commit(ctx, txn{typ: watch.Added, key: key, value: data})
	if err != nil {
		return err
	}
	if !response.Succeeded {
		return storage.NewKeyExistsError(key, 0)
	}
	if out == nil {
		return nil
	}
	return s.decode(key, data, response.Revision, out)
}

// GuaranteedUpdate implements [storage.Interface]. An update that changes nothing writes
// nothing: no revision, no event, and out has the object's old version. A writer that wants to
// cause an event must make a difference.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).GuaranteedUpdate
// Differs: nothing is encrypted; upstream also writes an unchanged object that was read with
// an old encryption key.
// Differs: if update changed nothing on a guess that has the stored bytes, but an old revision,
// it is called again with the stored revision, and preconditions are checked again. Upstream
// compares bytes alone.
func (s *Store) GuaranteedUpdate(
	ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	key, err := storage.PrepareKey(s.resourcePrefix, key, false)
	if err != nil {
		return err
	}
	state, err := s.initialState(ctx, key, ignoreNotFound, cached)
	if err != nil {
		return err
	}
	for {
		data, err := s.updateState(key, state, preconditions, update)
		if err != nil || bytes.Equal(data, state.data) {
			// Neither an error nor "nothing to do" counts if the state may be outdated.
			fresh, changed, readErr := s.refresh(ctx, key, ignoreNotFound, state)
			if readErr != nil {
				return readErr
			}
			if changed {
				state = fresh
				continue
			}
			if err != nil {
				return err
			}
			return s.decode(key, data, state.rev, out)
		}
		typ := watch.Modified
		if state.rev == 0 {
			typ = watch.Added
		}
		response, err := s.commit(ctx, txn{typ: typ, key: key, value: data, rev: state.rev})
		if err != nil {
			return err
		}
		if response.Succeeded {
			return s.decode(key, data, response.Revision, out)
		}
		if state, err = s.stateAfterConflict(key, response.KV, ignoreNotFound); err != nil {
			return err
		}
	}
}

// Delete implements [storage.Interface].
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).Delete
func (s *Store) Delete(
	ctx context.Context, key string, out runtime.Object,
	preconditions *storage.Preconditions, cached runtime.Object,
) error {
	key, err := storage.PrepareKey(s.resourcePrefix, key, false)
	if err != nil {
		return err
	}
	state, err := s.initialState(ctx, key, false, cached)
	if err != nil {
		return err
	}
	for {
		if err := preconditions.Check(key, state.obj); err != nil {
			fresh, changed, readErr := s.refresh(ctx, key, false, state)
			if readErr != nil {
				return readErr
			}
			if !changed {
				return err
			}
			state = fresh
			continue
		}
		response, err := s.commit(ctx, txn{typ: watch.Deleted, key: key, rev: state.rev})
		if err != nil {
			return err
		}
		if response.Succeeded {
			// The last state, but the deletion's revision.
			return s.decode(key, state.data, response.Revision, out)
		}
		if state, err = s.stateAfterConflict(key, response.KV, false); err != nil {
			return err
		}
	}
}

// commit runs the transaction. It fails if the key's revision was not the expected one: then the response's KV is the
// key's present state, nil if there is none.
func (s *Store) commit(ctx context.Context, t txn) (kubernetes.PutResponse, error) {
	response, err := s.write(ctx, t)
	if err != nil {
		return response, interpretWriteError(err, t.key)
	}
	if response.Succeeded {
		s.probe.Event(probe.TxnCommitted, string(t.typ), t.key, uint64(response.Revision), probe.RequestOf(ctx))
	}
	return response, nil
}

// write deletes, or puts: under a lease, if the store's objects have a time to live.
func (s *Store) write(ctx context.Context, t txn) (kubernetes.PutResponse, error) {
	if t.typ == watch.Deleted {
		response, err := s.client.OptimisticDelete(ctx, t.key, t.rev, kubernetes.DeleteOptions{GetOnFailure: true})
		return kubernetes.PutResponse(response), err // the same fields
	}
	for {
		lease, err := s.leases.getLease(ctx)
		if err != nil {
			return kubernetes.PutResponse{}, err
		}
		opts := kubernetes.PutOptions{GetOnFailure: true, LeaseID: lease}
		response, err := s.client.OptimisticPut(ctx, t.key, t.value, t.rev, opts)
		if s.leases.isGone(lease, err) {
			continue // with another lease; etcd has written nothing
		}
		return response, err
	}
}

// encode returns the bytes to store for obj, without its resource version: that is the revision of the write to come.
func (s *Store) encode(key string, obj runtime.Object) ([]byte, error) {
	if err := s.versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, err
	}
	data, err := runtime.Encode(s.codec, obj)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("encode %s: %w", key, err))
	}
	return data, nil
}

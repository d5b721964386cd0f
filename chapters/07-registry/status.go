package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// StatusREST is the status subresource of a kind: the same object under the same key, changed by another strategy.
// Users and controllers can so write to one object without undoing each other's part.
type StatusREST struct {
	store *Store // a copy of the resource's, with the strategy for statuses
}

// NewStatusREST returns the status subresource of store, whose resource must have a StatusStrategy.
func NewStatusREST(store *Store) *StatusREST {
	status := *store
	status.updateStrategy = store.resource.StatusStrategy
	return &StatusREST{store: &status}
}

// Describe returns what is known about the resource.
func (r *StatusREST) Describe() *Resource { return r.store.Describe() }

// New returns an empty object of the resource's kind.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Get is [Store.Get].
func (r *StatusREST) Get(ctx context.Context, namespace, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, namespace, name, options)
}

// Update is [Store.Update], for the status.
func (r *StatusREST) Update(ctx context.Context, namespace, name string, info UpdatedObjectInfo, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, namespace, name, info, options)
}

// ConvertToTable is [Store.ConvertToTable].
func (r *StatusREST) ConvertToTable(ctx context.Context, obj runtime.Object, options *metav1.TableOptions) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}

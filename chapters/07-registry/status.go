package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/kube/resources"
)

// subresource writes the same key by another strategy, so that users and controllers do not undo each other's changes.
type subresource struct {
	store *Store // a copy of the resource's, with the strategy of the subresource
}

func subresourceOf(store *Store, strategy UpdateStrategy) subresource {
	other := *store
	other.updateStrategy, other.createOnUpdate = strategy, false
	return subresource{&other}
}

// Describe returns what is known about the resource.
func (r subresource) Describe() *Resource { return r.store.Describe() }

// New returns an empty object of the resource's kind.
func (r subresource) New() runtime.Object { return r.store.New() }

// Update is [Store.Update], but never creates an object, not even for an apply: the error is 404.
func (r subresource) Update(ctx context.Context, namespace, name string, info UpdatedObjectInfo, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, namespace, name, info, false, options)
}

// StatusREST is the status subresource of a kind.
type StatusREST struct{ subresource }

// NewStatusREST returns the status subresource of store, whose resource must have a StatusStrategy.
func NewStatusREST(store *Store) *StatusREST {
	return &StatusREST{subresourceOf(store, store.resource.StatusStrategy)}
}

// Get is [Store.Get].
func (r *StatusREST) Get(ctx context.Context, namespace, name string,
	options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, namespace, name, options)
}

// FinalizeREST is the finalize subresource of namespaces. The controller that has removed the content of a namespace
// removes its own name from the list here; when the list is empty, the Store erases a namespace that is being deleted.
type FinalizeREST struct{ subresource }

// NewFinalizeREST returns the finalize subresource of a store of namespaces.
func NewFinalizeREST(store *Store) *FinalizeREST {
	return &FinalizeREST{subresourceOf(store, resources.NamespaceFinalizeStrategy{})}
}

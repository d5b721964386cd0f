package registry

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EvictionREST is the eviction subresource of pods, by which kubectl drain asks a pod to leave its node.
//
// Differs: a deletion with its preconditions. k8s.io/kubernetes/pkg/registry/core/pod/storage also asks disruption
// budgets, and notes in the pod why it goes.
type EvictionREST struct {
	Store *Store // of pods
}

// Describe returns what is known about pods.
func (r *EvictionREST) Describe() *Resource { return r.Store.Describe() }

// New returns an empty eviction.
func (r *EvictionREST) New() runtime.Object { return &policyv1.Eviction{} }

// Create deletes the pod name, as the options in obj say. Errors: 400 when the names differ, and those of
// [Store.Delete].
func (r *EvictionREST) Create(ctx context.Context, namespace, name string, obj runtime.Object,
	options *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok || eviction.Name != "" && eviction.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("name in URL does not match name in Eviction object: %s", name))
	}
	deletion := &metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		deletion = eviction.DeleteOptions.DeepCopy()
	}
	deletion.DryRun = append(deletion.DryRun, options.DryRun...)
	if _, _, err := r.Store.Delete(ctx, namespace, name, deletion); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Code: 201}, nil
}

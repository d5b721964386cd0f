package apiserver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
)

// addPodPaths adds the paths by which clients write to pods besides those of chapter 08, if pods are served.
func addPodPaths(storages map[string]handlers.Storage) {
	if store, ok := storages["pods"].(*registry.Store); ok {
		storages["bindings"] = bindings{&registry.BindingREST{Store: store}}
		storages["pods/eviction"] = eviction{store}
		storages["pods/log"] = podLog{store}
	}
}

// bindings is the older path of bindings, in which the name of the pod is not in the path but in the object.
//
// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/storage/storage.go: LegacyBindingREST
type bindings struct{ *registry.BindingREST }

// Describe returns what is known about bindings.
func (bindings) Describe() *registry.Resource {
	return &registry.Resource{GroupVersion: corev1.SchemeGroupVersion, Name: "bindings", Kind: "Binding",
		Namespaced: true}
}

// Create does what [registry.BindingREST.Create] does.
func (b bindings) Create(ctx context.Context, namespace string, obj runtime.Object,
	options *metav1.CreateOptions) (runtime.Object, error) {
	return b.BindingREST.Create(ctx, namespace, obj.(metav1.Object).GetName(), obj, options)
}

// eviction is the eviction subresource of pods, by which kubectl drain makes a pod leave its node.
//
// Differs: a deletion with its preconditions. k8s.io/kubernetes/pkg/registry/core/pod/storage also checks disruption
// budgets, and writes into the pod why it was evicted.
type eviction struct{ pods *registry.Store }

// Describe returns what is known about pods.
func (e eviction) Describe() *registry.Resource { return e.pods.Describe() }

// New returns an empty eviction.
func (eviction) New() runtime.Object { return &policyv1.Eviction{} }

// Create deletes the pod name with the options in obj. Errors: 400 when the names differ, and those of
// [registry.Store.Delete].
func (e eviction) Create(ctx context.Context, namespace, name string, obj runtime.Object,
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
	if _, _, err := e.pods.Delete(ctx, namespace, name, deletion); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Code: 201}, nil
}

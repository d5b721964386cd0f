package apiserver

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/resources"
)

// addScales adds the path by which kubectl scale and autoscalers change the size of what has one.
func addScales(storages map[string]handlers.Storage) {
	for _, name := range []string{"deployments.apps", "replicasets.apps", "statefulsets.apps"} {
		if store, ok := storages[name].(*registry.Store); ok {
			described := *store.Describe()
			described.Strategy, described.StatusStrategy = scaleStrategy{}, nil
			storages[name+"/scale"] = scale{store, &described}
		}
	}
}

// scale is the scale subresource of a kind: the object as if it had nothing but a size.
//
// Upstream: k8s.io/kubernetes/pkg/registry/apps/deployment/storage/storage.go: ScaleREST
// Differs: the size that is set here has no manager in the object's managed fields, and there is no apply.
type scale struct {
	store     *registry.Store
	described *registry.Resource // the store's, changed to what a Scale needs
}

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind()

// scaleStrategy leaves a Scale as it is.
type scaleStrategy struct{ resources.KeptStrategy }

// Default does nothing.
func (scaleStrategy) Default(runtime.Object) {}

// Describe returns what is known about the kind.
func (s scale) Describe() *registry.Resource { return s.described }

// New returns an empty scale.
func (scale) New() runtime.Object { return &autoscalingv1.Scale{} }

// Get reads the size of an object.
func (s scale) Get(ctx context.Context, namespace, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, namespace, name, options)
	if err != nil {
		return nil, err
	}
	return resources.ScaleOf(obj), nil
}

// Update changes the size of an object. Errors: 422 for a size that cannot be, and those of [registry.Store.Update].
func (s scale) Update(ctx context.Context, namespace, name string, info registry.UpdatedObjectInfo, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	change := func(ctx context.Context, old runtime.Object) (runtime.Object, error) {
		obj, err := info(ctx, resources.ScaleOf(old))
		if err != nil {
			return nil, err
		}
		wanted := obj.(*autoscalingv1.Scale)
		if wanted.Spec.Replicas < 0 {
			return nil, apierrors.NewInvalid(scaleKind, name, field.ErrorList{field.Invalid(
				field.NewPath("spec", "replicas"), wanted.Spec.Replicas, "must be greater than or equal to 0")})
		}
		return resources.Scaled(old, wanted), nil
	}
	obj, _, err := s.store.Update(ctx, namespace, name, change, false, options)
	if err != nil {
		return nil, false, err
	}
	return resources.ScaleOf(obj), false, nil
}

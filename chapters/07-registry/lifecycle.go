package registry

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SystemNamespaces are there from the start, and stay.
var SystemNamespaces = []string{metav1.NamespaceDefault, "kube-node-lease", metav1.NamespacePublic,
	metav1.NamespaceSystem}

// NamespaceGetter reads namespaces. The [Store] of namespaces is one.
type NamespaceGetter interface {
	Get(ctx context.Context, namespace, name string, options *metav1.GetOptions) (runtime.Object, error)
}

// admitCreate refuses what would be created in a namespace that does not exist, 404, or that is
// about to go away, 403.
//
// Upstream: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go: (*Lifecycle).Admit
// Differs: an admission plugin there, part of the registry here. Whether a namespace that
// exists is being deleted is read from the cache, which may lag; for 30 s after a deletion,
// upstream reads twice if its cache says "active".
func (s *Store) admitCreate(ctx context.Context, namespace, name string) error {
	if s.namespaces == nil || !s.resource.Namespaced {
		return nil
	}
	// The cache first: it is right nearly always.
	obj, err := s.namespaces.Get(ctx, "", namespace, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		obj, err = s.namespaces.Get(ctx, "", namespace, &metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	if obj.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	refused := apierrors.NewForbidden(s.resource.GroupResource(), name,
		fmt.Errorf("unable to create new content in "+
			"namespace %s because it is being terminated", namespace))
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes,
		metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", namespace),
			Field:   "metadata.namespace",
		})
	return refused
}

// admitDelete refuses the deletion of what the cluster cannot do without: 403.
func (s *Store) admitDelete(name string) error {
	if !slices.Contains(s.resource.Immortal, name) {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: s.resource.Name}, name,
		fmt.Errorf("this %s may not be deleted", s.resource.Singular()))
}

// ContentKeeper is implemented by the strategy of a kind whose objects are held back from
// deletion by something other than metadata.finalizers.
type ContentKeeper interface {
	// HoldsContent reports whether obj must not be erased yet.
	HoldsContent(obj runtime.Object) bool
	// MarkAsDeleting makes obj say that it is being deleted, in its own way.
	MarkAsDeleting(obj runtime.Object)
}

func (s *Store) holdsContent(obj runtime.Object) bool {
	keeper, ok := s.updateStrategy.(ContentKeeper)
	return ok && keeper.HoldsContent(obj)
}

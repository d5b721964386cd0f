package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SystemNamespaces are created at the start and cannot be deleted.
var SystemNamespaces = []string{metav1.NamespaceDefault, "kube-node-lease", metav1.NamespacePublic,
	metav1.NamespaceSystem}

// NamespaceGetter reads namespaces. The [Store] of namespaces is one.
type NamespaceGetter interface {
	Get(ctx context.Context, namespace, name string, options *metav1.GetOptions) (runtime.Object, error)
}

// admitCreate refuses to create an object in a namespace that does not exist, 404, or is being
// deleted, 403.
//
// Upstream: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go: (*Lifecycle).Admit
// Differs: an admission plugin there, part of the registry here. Whether a namespace that
// exists is being deleted is read from the cache, which may lag; for 30 s after a deletion,
// upstream reads twice if its cache says "active".
func (s *Store) admitCreate(ctx context.Context, namespace, name string) error {
	if s.namespaces == nil || !s.resource.Namespaced {
		return nil
	}
	// The cache first: it is nearly always right.
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

// admitDelete refuses to delete the system's namespaces: 403.
func (s *Store) admitDelete(name string) error {
	if s.resource.Name != "namespaces" || !slices.Contains(SystemNamespaces, name) {
		return nil
	}
	return apierrors.NewForbidden(s.resource.GroupResource(), name, errors.New("this namespace may not be deleted"))
}

// ContentKeeper is implemented by the strategy of a kind whose objects are held back from
// deletion by something other than metadata.finalizers.
type ContentKeeper interface {
	// HoldsContent reports whether obj must not be erased yet.
	HoldsContent(obj runtime.Object) bool
	// MarkAsDeleting notes the deletion in obj's own fields, besides the deletion timestamp.
	MarkAsDeleting(obj runtime.Object)
}

func (s *Store) holdsContent(obj runtime.Object) bool {
	keeper, ok := s.updateStrategy.(ContentKeeper)
	return ok && keeper.HoldsContent(obj)
}

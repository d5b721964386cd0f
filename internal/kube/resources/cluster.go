package resources

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NamespaceAttrs returns a namespace's labels and selectable fields.
var NamespaceAttrs = attrs(func(namespace *corev1.Namespace) fields.Fields {
	return fields.Set{"metadata.name": namespace.Name, "status.phase": string(namespace.Status.Phase)}
})

// NamespaceStrategy is for writes by users, and for the deletion of namespaces.
type NamespaceStrategy struct{ freely }

// ValidateName requires a DNS label: a namespace is a label in the DNS names of its services.
func (NamespaceStrategy) ValidateName(name string, prefix bool) []string {
	return apivalidation.NameIsDNSLabel(name, prefix)
}

// Default labels a namespace with its name, so that label selectors can select it.
func (NamespaceStrategy) Default(obj runtime.Object) {
	namespace := obj.(*corev1.Namespace)
	if namespace.Name != "" {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, corev1.LabelMetadataName, namespace.Name)
	}
}

// PrepareForCreate makes the namespace active, and adds the finalizer that stays until the content is removed.
func (NamespaceStrategy) PrepareForCreate(obj runtime.Object) {
	namespace := obj.(*corev1.Namespace)
	namespace.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes) {
		namespace.Spec.Finalizers = append(namespace.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

// HoldsContent reports whether finalizers remain, so that a controller may still have content to remove.
func (NamespaceStrategy) HoldsContent(obj runtime.Object) bool {
	return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0
}

// MarkAsDeleting sets the phase Terminating, in which the server refuses new content.
func (NamespaceStrategy) MarkAsDeleting(obj runtime.Object) {
	obj.(*corev1.Namespace).Status.Phase = corev1.NamespaceTerminating
}

// PrepareForUpdate keeps the old status and the spec's old finalizers, which have endpoints of their own.
func (NamespaceStrategy) PrepareForUpdate(obj, old runtime.Object) {
	namespace, oldNamespace := obj.(*corev1.Namespace), old.(*corev1.Namespace)
	namespace.Status, namespace.Spec = oldNamespace.Status, oldNamespace.Spec
}

// NamespaceStatusStrategy is for the status of namespaces.
type NamespaceStatusStrategy struct{ NamespaceStrategy }

// PrepareForUpdate keeps the old spec.
func (NamespaceStatusStrategy) PrepareForUpdate(obj, old runtime.Object) {
	obj.(*corev1.Namespace).Spec = old.(*corev1.Namespace).Spec
}

// ValidateUpdate requires the phase Terminating if the namespace is being deleted, and Active otherwise.
func (NamespaceStatusStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList {
	namespace := obj.(*corev1.Namespace)
	want := corev1.NamespaceActive
	if namespace.DeletionTimestamp != nil {
		want = corev1.NamespaceTerminating
	}
	if namespace.Status.Phase == want {
		return nil
	}
	detail := fmt.Sprintf("must be %q, as metadata.deletionTimestamp says", want)
	return field.ErrorList{field.Invalid(field.NewPath("status", "phase"), namespace.Status.Phase, detail)}
}

// NamespaceFinalizeStrategy is for the controllers that remove a namespace's content.
type NamespaceFinalizeStrategy struct{ NamespaceStrategy }

// PrepareForUpdate changes only the spec's finalizers.
func (NamespaceFinalizeStrategy) PrepareForUpdate(obj, old runtime.Object) {
	namespace, oldNamespace := obj.(*corev1.Namespace), old.(*corev1.Namespace)
	finalizers := namespace.Spec.Finalizers
	oldNamespace.DeepCopyInto(namespace)
	namespace.Spec.Finalizers = finalizers
}

// NodeAttrs returns a node's labels and selectable fields.
var NodeAttrs = attrs(func(node *corev1.Node) fields.Fields {
	return fields.Set{"metadata.name": node.Name, "spec.unschedulable": fmt.Sprint(node.Spec.Unschedulable)}
})

// NodeStrategy is for the spec of nodes. A new node keeps the status that its kubelet sends.
//
// Differs: upstream checks taints and addresses, and keeps a provider ID and a pod CIDR.
type NodeStrategy struct{ freely }

// PrepareForUpdate keeps the old status.
func (NodeStrategy) PrepareForUpdate(obj, old runtime.Object) {
	obj.(*corev1.Node).Status = old.(*corev1.Node).Status
}

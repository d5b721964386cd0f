package registry

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"listwatch/internal/resources"
)

// Namespaces describes namespaces. One that is deleted is only marked: it is erased when each that is on the list in its
// spec has removed what is in it. That is a controller, as upstream.
func Namespaces() *Resource {
	return &Resource{
		Name: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
		Prefix:              "/registry/namespaces",
		NewFunc:             func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:         func() runtime.Object { return &corev1.NamespaceList{} },
		GetAttrs:            namespaceAttrs,
		Fields:              []string{"metadata.name", "status.phase"},
		Default:             defaultNamespace,
		ValidateName:        validation.NameIsDNSLabel,
		Columns:             resources.NamespaceColumns(),
		Cells:               resources.NamespaceCells,
		Strategy:            namespaceStrategy{},
		StatusStrategy:      namespaceStatusStrategy{},
		Immortal:            SystemNamespaces,
		ReturnDeletedObject: true,
	}
}

func namespaceAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, nil, fmt.Errorf("not a namespace: %T", obj)
	}
	return namespace.Labels, fields.Set{"metadata.name": namespace.Name, "status.phase": string(namespace.Status.Phase)}, nil
}

// defaultNamespace labels a namespace with its own name, so that label selectors can pick it.
func defaultNamespace(obj runtime.Object) {
	namespace := obj.(*corev1.Namespace)
	if namespace.Name != "" {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, corev1.LabelMetadataName, namespace.Name)
	}
}

type namespaceStrategy struct{}

var (
	_ Strategy      = namespaceStrategy{}
	_ ContentKeeper = namespaceStrategy{}
)

// PrepareForCreate makes the namespace active, and sees to it that its content will be removed before it is.
func (namespaceStrategy) PrepareForCreate(obj runtime.Object) {
	namespace := obj.(*corev1.Namespace)
	namespace.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes) {
		namespace.Spec.Finalizers = append(namespace.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

// HoldsContent reports whether something has yet to be removed.
func (namespaceStrategy) HoldsContent(obj runtime.Object) bool {
	return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0
}

// MarkAsDeleting makes the namespace refuse new content.
func (namespaceStrategy) MarkAsDeleting(obj runtime.Object) {
	obj.(*corev1.Namespace).Status.Phase = corev1.NamespaceTerminating
}

func (namespaceStrategy) Validate(runtime.Object) field.ErrorList { return nil }

// PrepareForUpdate keeps the status and the finalizers, which have paths of their own.
func (namespaceStrategy) PrepareForUpdate(obj, old runtime.Object) {
	namespace, oldNamespace := obj.(*corev1.Namespace), old.(*corev1.Namespace)
	namespace.Status, namespace.Spec = oldNamespace.Status, oldNamespace.Spec
}

func (namespaceStrategy) ValidateUpdate(_, _ runtime.Object) field.ErrorList { return nil }

type namespaceStatusStrategy struct{ namespaceStrategy }

// PrepareForUpdate keeps everything but the status and the metadata.
func (namespaceStatusStrategy) PrepareForUpdate(obj, old runtime.Object) {
	obj.(*corev1.Namespace).Spec = old.(*corev1.Namespace).Spec
}

// ValidateUpdate keeps the phase in step with the deletion.
func (namespaceStatusStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList {
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

// namespaceFinalizeStrategy is for those who remove content.
type namespaceFinalizeStrategy struct{ namespaceStrategy }

// PrepareForUpdate keeps everything but the finalizers.
func (namespaceFinalizeStrategy) PrepareForUpdate(obj, old runtime.Object) {
	namespace, oldNamespace := obj.(*corev1.Namespace), old.(*corev1.Namespace)
	finalizers := namespace.Spec.Finalizers
	oldNamespace.DeepCopyInto(namespace)
	namespace.Spec.Finalizers = finalizers
}

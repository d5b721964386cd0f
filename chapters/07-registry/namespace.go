package registry

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Namespaces describes namespaces.
// Differs: a namespace need not exist for something to be created in it, and nothing in it goes with it. Upstream has
// an admission plugin for the one and a controller for the other.
func Namespaces() *Resource {
	return &Resource{
		Name: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
		Prefix:       "/registry/namespaces",
		NewFunc:      func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:  func() runtime.Object { return &corev1.NamespaceList{} },
		GetAttrs:     namespaceAttrs,
		Fields:       []string{"metadata.name", "status.phase"},
		Default:      defaultNamespace,
		ValidateName: validation.NameIsDNSLabel,
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("Status", "string", "Active, or Terminating.", 0), ageColumn(),
		},
		Cells: func(obj runtime.Object, now time.Time) []any {
			namespace := obj.(*corev1.Namespace)
			return []any{namespace.Name, string(namespace.Status.Phase), age(namespace.CreationTimestamp, now)}
		},
		Strategy:            namespaceStrategy{},
		ReturnDeletedObject: true,
	}
}

func namespaceAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
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

// PrepareForCreate makes the namespace active.
func (namespaceStrategy) PrepareForCreate(obj runtime.Object) {
	obj.(*corev1.Namespace).Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
}

func (namespaceStrategy) Validate(runtime.Object) field.ErrorList { return nil }

// PrepareForUpdate keeps the status.
func (namespaceStrategy) PrepareForUpdate(obj, old runtime.Object) {
	obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
}

func (namespaceStrategy) ValidateUpdate(_, _ runtime.Object) field.ErrorList { return nil }

package registry

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/resources"
)

// maxConfigMapSize keeps objects small enough for etcd, which refuses more than 1.5 MiB in one request.
const maxConfigMapSize = 1 << 20

// ConfigMaps describes configmaps.
func ConfigMaps() *Resource {
	return &Resource{
		Name: "configmaps", Singular: "configmap", Kind: "ConfigMap", ShortNames: []string{"cm"}, Namespaced: true,
		Prefix:       "/registry/configmaps",
		NewFunc:      func() runtime.Object { return &corev1.ConfigMap{} },
		NewListFunc:  func() runtime.Object { return &corev1.ConfigMapList{} },
		GetAttrs:     storage.DefaultNamespaceScopedAttr,
		Fields:       []string{"metadata.name", "metadata.namespace"},
		Default:      func(runtime.Object) {},
		ValidateName: validation.NameIsDNSSubdomain,
		Columns:      resources.ConfigMapColumns(),
		Cells:        resources.ConfigMapCells,
		Strategy:     configMapStrategy{},
	}
}

type configMapStrategy struct{}

func (configMapStrategy) PrepareForCreate(runtime.Object) {}

func (configMapStrategy) PrepareForUpdate(_, _ runtime.Object) {}

// Validate checks keys and size.
func (configMapStrategy) Validate(obj runtime.Object) field.ErrorList {
	configMap := obj.(*corev1.ConfigMap)
	var problems field.ErrorList
	size := 0
	for key, value := range configMap.Data {
		problems = append(problems, validateDataKey(key, field.NewPath("data").Key(key))...)
		if _, both := configMap.BinaryData[key]; both {
			problems = append(problems, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(value)
	}
	for key, value := range configMap.BinaryData {
		problems = append(problems, validateDataKey(key, field.NewPath("binaryData").Key(key))...)
		size += len(value)
	}
	if size > maxConfigMapSize {
		problems = append(problems, field.TooLong(field.NewPath(""), "", maxConfigMapSize))
	}
	return problems
}

func validateDataKey(key string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, text := range utilvalidation.IsConfigMapKey(key) {
		problems = append(problems, field.Invalid(path, key, text))
	}
	return problems
}

// ValidateUpdate also keeps what was once declared immutable.
func (s configMapStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	configMap, oldMap := obj.(*corev1.ConfigMap), old.(*corev1.ConfigMap)
	problems := s.Validate(obj)
	if oldMap.Immutable == nil || !*oldMap.Immutable {
		return problems
	}
	when := fmt.Sprintf("field is immutable when `%s` is set", "immutable")
	if configMap.Immutable == nil || !*configMap.Immutable {
		problems = append(problems, field.Forbidden(field.NewPath("immutable"), when))
	}
	if !equality.Semantic.DeepEqual(configMap.Data, oldMap.Data) {
		problems = append(problems, field.Forbidden(field.NewPath("data"), when))
	}
	if !equality.Semantic.DeepEqual(configMap.BinaryData, oldMap.BinaryData) {
		problems = append(problems, field.Forbidden(field.NewPath("binaryData"), when))
	}
	return problems
}

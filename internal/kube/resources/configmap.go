package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxConfigMapSize keeps objects small enough for etcd, which refuses more than 1.5 MiB in one request.
const maxConfigMapSize = 1 << 20

// ConfigMapStrategy is for configmaps.
type ConfigMapStrategy struct{ freely }

// Validate checks keys and size.
func (ConfigMapStrategy) Validate(obj runtime.Object) field.ErrorList {
	configMap := obj.(*corev1.ConfigMap)
	var problems field.ErrorList
	size := 0
	for key, value := range configMap.Data {
		path := field.NewPath("data").Key(key)
		problems = append(problems, check(key, validation.IsConfigMapKey, path)...)
		if _, both := configMap.BinaryData[key]; both {
			problems = append(problems, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
		size += len(value)
	}
	for key, value := range configMap.BinaryData {
		problems = append(problems, check(key, validation.IsConfigMapKey, field.NewPath("binaryData").Key(key))...)
		size += len(value)
	}
	if size > maxConfigMapSize {
		problems = append(problems, field.TooLong(field.NewPath(""), "", maxConfigMapSize))
	}
	return problems
}

// ValidateUpdate also keeps what was once declared immutable.
func (s ConfigMapStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	configMap, oldMap := obj.(*corev1.ConfigMap), old.(*corev1.ConfigMap)
	problems := s.Validate(obj)
	if oldMap.Immutable == nil || !*oldMap.Immutable {
		return problems
	}
	refuse := func(name string, changed bool) {
		if changed {
			problems = append(problems, field.Forbidden(field.NewPath(name),
				"field is immutable when `immutable` is set"))
		}
	}
	refuse("immutable", configMap.Immutable == nil || !*configMap.Immutable)
	refuse("data", !equality.Semantic.DeepEqual(configMap.Data, oldMap.Data))
	refuse("binaryData", !equality.Semantic.DeepEqual(configMap.BinaryData, oldMap.BinaryData))
	return problems
}

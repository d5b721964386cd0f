package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// maxDataSize keeps config maps and secrets small enough for etcd, which refuses more than 1.5 MiB in one request.
const maxDataSize = 1 << 20

// ConfigMapStrategy is for configmaps.
type ConfigMapStrategy struct{ freely }

// Validate checks keys and size.
func (ConfigMapStrategy) Validate(obj runtime.Object) field.ErrorList {
	configMap := obj.(*corev1.ConfigMap)
	problems, size := checkData(configMap.Data, "data")
	binary, more := checkData(configMap.BinaryData, "binaryData")
	problems = append(problems, binary...)
	for key := range configMap.Data {
		if _, both := configMap.BinaryData[key]; both {
			path := field.NewPath("data").Key(key)
			problems = append(problems, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
	}
	if size+more > maxDataSize {
		problems = append(problems, field.TooLong(field.NewPath(""), "", maxDataSize))
	}
	return problems
}

// checkData checks the keys of data, and returns the size of its values.
func checkData[V ~string | ~[]byte](data map[string]V, name string) (problems field.ErrorList, size int) {
	for key, value := range data {
		problems = append(problems, check(key, validation.IsConfigMapKey, field.NewPath(name).Key(key))...)
		size += len(value)
	}
	return problems, size
}

// ValidateUpdate also refuses to change the data of an immutable config map.
func (s ConfigMapStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	configMap, before := obj.(*corev1.ConfigMap), old.(*corev1.ConfigMap)
	problems := s.Validate(obj)
	if !ptr.Deref(before.Immutable, false) {
		return problems
	}
	return slices.Concat(problems,
		kept("immutable", ptr.Deref(configMap.Immutable, false)),
		kept("data", equality.Semantic.DeepEqual(configMap.Data, before.Data)),
		kept("binaryData", equality.Semantic.DeepEqual(configMap.BinaryData, before.BinaryData)))
}

// kept returns a problem if a field of an immutable object has changed.
func kept(name string, same bool) field.ErrorList {
	if same {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set")}
}

package resources

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// SecretAttrs returns a secret's labels and selectable fields.
func SecretAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return nil, nil, fmt.Errorf("not a secret: %T", obj)
	}
	return secret.Labels, fields.Set{"metadata.name": secret.Name, "metadata.namespace": secret.Namespace,
		"type": string(secret.Type)}, nil
}

// SecretStrategy is for secrets.
//
// Differs: upstream also checks that a secret has what its type wants.
type SecretStrategy struct{ freely }

// Default turns text into data, and gives a secret without a type the usual one.
func (SecretStrategy) Default(obj runtime.Object) {
	secret := obj.(*corev1.Secret)
	secret.Type = cmp.Or(secret.Type, corev1.SecretTypeOpaque)
	for key, text := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(text)
	}
	secret.StringData = nil
}

// Validate checks keys and size.
func (SecretStrategy) Validate(obj runtime.Object) field.ErrorList {
	problems, size := checkData(obj.(*corev1.Secret).Data, "data")
	if size > maxDataSize {
		problems = append(problems, field.TooLong(field.NewPath("data"), "", maxDataSize))
	}
	return problems
}

// ValidateUpdate also refuses to change the type, and the data of an immutable secret.
func (s SecretStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	secret, before := obj.(*corev1.Secret), old.(*corev1.Secret)
	problems := s.Validate(obj)
	if secret.Type != before.Type {
		problems = append(problems, field.Invalid(field.NewPath("type"), secret.Type, "field is immutable"))
	}
	if ptr.Deref(before.Immutable, false) {
		problems = append(problems, kept("immutable", ptr.Deref(secret.Immutable, false))...)
		problems = append(problems, kept("data", equality.Semantic.DeepEqual(secret.Data, before.Data))...)
	}
	return problems
}

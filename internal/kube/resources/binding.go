package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateBinding checks where a pod is to run.
func ValidateBinding(binding *corev1.Binding) field.ErrorList {
	var problems field.ErrorList
	path := field.NewPath("target")
	if kind := binding.Target.Kind; kind != "" && kind != "Node" {
		problems = append(problems, field.NotSupported(path.Child("kind"), kind, []string{"Node", "<empty>"}))
	}
	if binding.Target.Name == "" {
		problems = append(problems, field.Required(path.Child("name"), ""))
	}
	return problems
}

// SetPodCondition replaces the condition of the same type or adds it.
func SetPodCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	for i := range status.Conditions {
		if status.Conditions[i].Type == condition.Type {
			status.Conditions[i] = condition
			return
		}
	}
	status.Conditions = append(status.Conditions, condition)
}

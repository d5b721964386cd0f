package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateBinding checks the target of a binding.
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

// noteSchedulingGates adds the condition that keeps a new pod with gates from the scheduler.
func noteSchedulingGates(pod *corev1.Pod) {
	if len(pod.Spec.SchedulingGates) == 0 {
		return
	}
	SetPodCondition(&pod.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
		Message: "Scheduling is blocked due to non-empty scheduling gates",
	})
}

// SetPodCondition replaces the condition of the same type, or adds it. It keeps the time of the last transition if the
// status is the same.
func SetPodCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	for i, old := range status.Conditions {
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions[i] = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}

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

// noteSchedulingGates says in the conditions of a new pod that it is not to be scheduled yet.
func noteSchedulingGates(pod *corev1.Pod) {
	if len(pod.Spec.SchedulingGates) == 0 {
		return
	}
	SetPodCondition(&pod.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
		Message: "Scheduling is blocked due to non-empty scheduling gates",
	})
}

// SetPodCondition replaces the condition of the same type or adds it. The time of its last transition changes only with
// the status.
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

package resources

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sidecars returns the names of the init containers that run as long as the pod does. Tables count them as containers.
func sidecars(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			names[c.Name] = true
		}
	}
	return names
}

// lasting returns the states of the containers and sidecars.
func lasting(pod *corev1.Pod) []corev1.ContainerStatus {
	statuses, lasts := pod.Status.ContainerStatuses, sidecars(pod)
	for _, status := range pod.Status.InitContainerStatuses {
		if lasts[status.Name] {
			statuses = append(slices.Clip(statuses), status)
		}
	}
	return statuses
}

func podReady(pod *corev1.Pod) any {
	ready := 0
	for _, status := range lasting(pod) {
		if status.Ready && status.State.Running != nil {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers)+len(sidecars(pod)))
}

func podRestarts(r *Row) any {
	restarts, last := 0, metav1.Time{}
	for _, status := range lasting(r.Object.(*corev1.Pod)) {
		restarts += int(status.RestartCount)
		if ended := status.LastTerminationState.Terminated; ended != nil && last.Before(&ended.FinishedAt) {
			last = ended.FinishedAt
		}
	}
	if restarts > 0 && !last.IsZero() {
		return fmt.Sprintf("%d (%s ago)", restarts, age(last, r.Now))
	}
	return strconv.Itoa(restarts)
}

// podReason sums up a pod in one word. A reason overrides the phase, the containers' states override both, and a
// requested deletion overrides everything.
func podReason(pod *corev1.Pod) any {
	reason := cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonSchedulingGated {
			reason = condition.Reason
		}
	}
	reason = cmp.Or(initReason(pod), containersReason(pod, reason))
	if pod.DeletionTimestamp == nil {
		return reason
	}
	if pod.Status.Reason == "NodeLost" {
		return "Unknown"
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return reason
	}
	return "Terminating"
}

// initReason describes the init container that has not finished; "" if all have.
func initReason(pod *corev1.Pod) string {
	lasts := sidecars(pod)
	for i, status := range pod.Status.InitContainerStatuses {
		state := status.State
		switch {
		case lasts[status.Name] && status.Started != nil && *status.Started:
			continue
		case state.Terminated != nil && state.Terminated.ExitCode == 0:
			continue
		case state.Terminated != nil:
			return "Init:" + terminatedReason(state.Terminated)
		case state.Waiting != nil && state.Waiting.Reason != "" && state.Waiting.Reason != "PodInitializing":
			return "Init:" + state.Waiting.Reason
		default:
			return fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
	}
	return ""
}

// containersReason returns the reason of the first container that has one, otherwise reason.
func containersReason(pod *corev1.Pod, reason string) string {
	running := false
	for _, status := range slices.Backward(pod.Status.ContainerStatuses) {
		switch {
		case status.State.Waiting != nil && status.State.Waiting.Reason != "":
			reason = status.State.Waiting.Reason
		case status.State.Terminated != nil:
			reason = terminatedReason(status.State.Terminated)
		case status.Ready && status.State.Running != nil:
			running = true
		}
	}
	// Some containers have completed, and others still run.
	if reason != "Completed" || !running {
		return reason
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return "Running"
		}
	}
	return "NotReady"
}

func terminatedReason(state *corev1.ContainerStateTerminated) string {
	switch {
	case state.Reason != "":
		return state.Reason
	case state.Signal != 0:
		return fmt.Sprintf("Signal:%d", state.Signal)
	default:
		return fmt.Sprintf("ExitCode:%d", state.ExitCode)
	}
}

func podAddress(pod *corev1.Pod) string {
	if len(pod.Status.PodIPs) > 0 {
		return pod.Status.PodIPs[0].IP
	}
	return pod.Status.PodIP
}

func readinessGates(pod *corev1.Pod) any {
	gates := pod.Spec.ReadinessGates
	if len(gates) == 0 {
		return "<none>"
	}
	hold := 0
	for _, gate := range gates {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == gate.ConditionType && condition.Status == corev1.ConditionTrue {
				hold++
			}
		}
	}
	return fmt.Sprintf("%d/%d", hold, len(gates))
}

package controllers

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/kube/resources"
)

// podIsTerminal reports whether a pod has run to its end: nothing will make it run again.
func podIsTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isInactive reports whether a pod counts for no replica set any more.
func isInactive(pod *corev1.Pod) bool { return podIsTerminal(pod) || pod.DeletionTimestamp != nil }

// isReady reports whether a pod says that it is ready.
func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(each corev1.PodCondition) bool {
		return each.Type == corev1.PodReady && each.Status == corev1.ConditionTrue
	})
}

// setPending writes what a kubelet knows as soon as it has seen the pod: it is here, its containers are being made.
func setPending(status *corev1.PodStatus, pod *corev1.Pod, hostIP string, now time.Time) {
	start := metav1.NewTime(now)
	status.Phase = corev1.PodPending
	status.StartTime = &start
	status.HostIP = hostIP
	status.HostIPs = []corev1.HostIP{{IP: hostIP}}
	status.ContainerStatuses = containerStatuses(pod, false, corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"},
	})
	setCondition(status, corev1.PodInitialized, corev1.ConditionTrue, "", now)
	setReady(status, corev1.ConditionFalse, "ContainersNotReady", now)
}

// setRunning writes that every container runs and is ready.
func setRunning(status *corev1.PodStatus, pod *corev1.Pod, podIP string, now time.Time) {
	status.Phase = corev1.PodRunning
	status.PodIP = podIP
	status.PodIPs = []corev1.PodIP{{IP: podIP}}
	status.ContainerStatuses = containerStatuses(pod, true, corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)},
	})
	setCondition(status, corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", now)
	setReady(status, corev1.ConditionTrue, "", now)
}

// setSucceeded writes that every container has ended with exit code 0.
func setSucceeded(status *corev1.PodStatus, pod *corev1.Pod, now time.Time) {
	terminated := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.NewTime(now)}
	if len(status.ContainerStatuses) > 0 && status.ContainerStatuses[0].State.Running != nil {
		terminated.StartedAt = status.ContainerStatuses[0].State.Running.StartedAt
	}
	status.Phase = corev1.PodSucceeded
	status.ContainerStatuses = containerStatuses(pod, false, corev1.ContainerState{Terminated: terminated})
	setCondition(status, corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", now)
	setReady(status, corev1.ConditionFalse, "PodCompleted", now)
}

// containerStatuses returns one status per container of the pod, all in the same state. A container that has been made
// has an ID, and so has its image: programs that follow pods leave out containers without one.
//
// Differs: there is no runtime that could give IDs; each is a hash, the same every time.
func containerStatuses(pod *corev1.Pod, ready bool, state corev1.ContainerState) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(pod.Spec.Containers))
	for _, container := range pod.Spec.Containers {
		started := ready
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image,
			Ready: ready, Started: &started, State: *state.DeepCopy()}
		if state.Waiting == nil {
			status.ContainerID = "none://" + hash(string(pod.UID)+"/"+container.Name)
			status.ImageID = container.Image + "@sha256:" + hash(container.Image)
		}
		if status.State.Terminated != nil {
			status.State.Terminated.ContainerID = status.ContainerID
		}
		statuses = append(statuses, status)
	}
	return statuses
}

func hash(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// setReady sets the two conditions by which others judge a pod.
func setReady(status *corev1.PodStatus, value corev1.ConditionStatus, reason string, now time.Time) {
	setCondition(status, corev1.PodReady, value, reason, now)
	setCondition(status, corev1.ContainersReady, value, reason, now)
}

// setCondition sets one condition and keeps the others, for instance the scheduler's.
func setCondition(status *corev1.PodStatus, typ corev1.PodConditionType, value corev1.ConditionStatus, reason string,
	now time.Time) {
	resources.SetPodCondition(status, corev1.PodCondition{
		Type: typ, Status: value, Reason: reason, LastTransitionTime: metav1.NewTime(now),
	})
}

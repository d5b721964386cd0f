package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

var replicaSetSource = corev1.EventSource{Component: "replicaset-controller"}

// createPod creates one pod from the template. The server completes its name.
func (c *ReplicaSetController) createPod(ctx context.Context, rs *appsv1.ReplicaSet) error {
	template := rs.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		GenerateName: rs.Name + "-", Namespace: rs.Namespace, Labels: template.Labels,
		Annotations: template.Annotations, Finalizers: template.Finalizers,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, replicaSetKind)},
	}, Spec: template.Spec}
	created := &corev1.Pod{}
	err := c.config.Client.Post().Namespace(rs.Namespace).Resource("pods").Body(pod).Do(ctx).Into(created)
	if err != nil {
		c.config.Recorder.Event(replicaSetSource, rs, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v",
			err)
		return fmt.Errorf("create a pod of %s: %w", keyOf(rs), err)
	}
	c.config.Recorder.Event(replicaSetSource, rs, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %s",
		created.Name)
	return nil
}

// deletePod deletes one pod, gracefully, in the version that was looked at: it was chosen because it was not ready,
// say, and may be by now. Then the server answers 409 Conflict, and the choice is made again.
//
// Differs: upstream sends no version.
func (c *ReplicaSetController) deletePod(ctx context.Context, rs *appsv1.ReplicaSet, pod *corev1.Pod) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID,
		ResourceVersion: &pod.ResourceVersion}}
	err := c.config.Client.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).Body(options).
		Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("delete %s: %w", keyOf(pod), err)
	}
	c.config.Recorder.Event(replicaSetSource, rs, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %s",
		pod.Name)
	return nil
}

// isInactive reports whether a pod counts for no replica set any more.
func isInactive(pod *corev1.Pod) bool { return podIsTerminal(pod) || pod.DeletionTimestamp != nil }

// podsToDelete returns the n pods that will be missed least: those that are not ready yet, then
// those on the fullest node, then the newest.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_utils.go: ActivePodsWithRanks
// Differs: no annotation pod-deletion-cost, no phases, no restarts; the pods of the deployment's other replica sets do
// not count for a node; compares times, and not their logarithms.
func podsToDelete(pods []*corev1.Pod, n int) []*corev1.Pod {
	onNode := map[string]int{}
	for _, pod := range pods {
		onNode[pod.Spec.NodeName]++
	}
	ranked := slices.Clone(pods)
	slices.SortStableFunc(ranked, func(a, b *corev1.Pod) int {
		return cmp.Or(
			rank(a.Spec.NodeName != "")-rank(b.Spec.NodeName != ""),
			rank(readySince(a) != nil)-rank(readySince(b) != nil),
			onNode[b.Spec.NodeName]-onNode[a.Spec.NodeName],
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	return ranked[:n]
}

func rank(later bool) int {
	if later {
		return 1
	}
	return 0
}

// readySince returns when a pod became ready; nil: it is not.
func readySince(pod *corev1.Pod) *metav1.Time {
	for i := range pod.Status.Conditions {
		if each := &pod.Status.Conditions[i]; each.Type == corev1.PodReady && each.Status == corev1.ConditionTrue {
			return &each.LastTransitionTime
		}
	}
	return nil
}

// calculateStatus counts pods, which are those that the controller has counted, and marked ones in
// all. A pod is available when it has been ready for minReadySeconds; next is how long until another
// one will be, 0 if none is waited for.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set_utils.go: calculateStatus
func (c *ReplicaSetController) calculateStatus(rs *appsv1.ReplicaSet, pods, all []*corev1.Pod) (next time.Duration) {
	status := &rs.Status
	*status = appsv1.ReplicaSetStatus{ObservedGeneration: rs.Generation, Replicas: int32(len(pods)),
		Conditions: status.Conditions, TerminatingReplicas: new(int32)}
	template, now := labels.SelectorFromSet(rs.Spec.Template.Labels), c.config.Clock.Now()
	for _, pod := range pods {
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		ready := readySince(pod)
		if ready == nil {
			continue
		}
		status.ReadyReplicas++
		rest := ready.Add(time.Duration(rs.Spec.MinReadySeconds) * time.Second).Sub(now)
		if rs.Spec.MinReadySeconds == 0 || rest <= 0 {
			status.AvailableReplicas++
		} else if next == 0 || rest < next {
			next = rest
		}
	}
	for _, pod := range all {
		if pod.DeletionTimestamp != nil && !podIsTerminal(pod) && metav1.IsControlledBy(pod, rs) {
			*status.TerminatingReplicas++
		}
	}
	return next
}

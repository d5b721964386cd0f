package controllers

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Reasons of the condition Progressing by which the controller knows later what it has written. kubectl rollout status
// reads the second.
const (
	reasonAvailable = "NewReplicaSetAvailable"
	reasonTimedOut  = "ProgressDeadlineExceeded"
	reasonPaused    = "DeploymentPaused"
)

// checkPaused notes that the deployment is paused or no longer paused: time that passes meanwhile is no lack of
// progress.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).checkPausedConditions
func (r *rollout) checkPaused() {
	reason := r.progressing().Reason
	switch {
	case reason == reasonTimedOut:
	case r.d.Spec.Paused && reason != reasonPaused:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !r.d.Spec.Paused && reason == reasonPaused:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentResumed",
			"Deployment is resumed")
	}
}

// calculateStatus adds up what the replica sets say.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: calculateStatus
func (r *rollout) calculateStatus() {
	before, status := r.d.Status, &r.d.Status
	*status = appsv1.DeploymentStatus{ObservedGeneration: r.d.Generation, CollisionCount: before.CollisionCount,
		Conditions: before.Conditions, TerminatingReplicas: new(int32)}
	for _, rs := range r.all() {
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
		*status.TerminatingReplicas += ptr.Deref(rs.Status.TerminatingReplicas, 0)
	}
	if r.newRS != nil {
		status.UpdatedReplicas = r.newRS.Status.Replicas
	}
	status.UnavailableReplicas = max(0, r.sizes()-status.AvailableReplicas)
	if _, unavailable := r.fenceposts(); status.AvailableReplicas >= *r.d.Spec.Replicas-unavailable {
		r.setCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable",
			"Deployment has minimum availability.")
	} else {
		r.setCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable",
			"Deployment does not have minimum availability.")
	}
	if r.estimate {
		r.estimateProgress(&before)
	}
}

// complete reports whether all pods that are wanted are new and available, and no others are left.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go: DeploymentComplete
func (r *rollout) complete() bool {
	status, want := &r.d.Status, *r.d.Spec.Replicas
	return status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want &&
		status.ObservedGeneration >= r.d.Generation
}

// estimateProgress sets the condition Progressing, by which kubectl rollout status knows when to end.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/progress.go: (*DeploymentController).syncRolloutStatus
func (r *rollout) estimateProgress(before *appsv1.DeploymentStatus) {
	now, current, name := &r.d.Status, r.progressing(), fmt.Sprintf("Deployment %q", r.d.Name)
	if r.newRS != nil {
		name = fmt.Sprintf("ReplicaSet %q", r.newRS.Name)
	}
	left, underWay := r.timeLeft()
	progress := now.UpdatedReplicas > before.UpdatedReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas
	switch {
	case !r.hasDeadline():
		now.Conditions = slices.DeleteFunc(slices.Clone(now.Conditions), isProgressing)
	case now.Replicas == now.UpdatedReplicas && current.Reason == reasonAvailable: // a rollout that was over before
	case r.complete():
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonAvailable,
			name+" has successfully progressed.")
	case progress:
		// also if only the time of it is new
		now.Conditions = slices.DeleteFunc(slices.Clone(now.Conditions), isProgressing)
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", name+" is progressing.")
		if current.Status == corev1.ConditionTrue {
			now.Conditions[len(now.Conditions)-1].LastTransitionTime = current.LastTransitionTime
		}
	case underWay && left <= 0:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut,
			name+" has timed out progressing.")
	}
}

// hasDeadline reports whether a lack of progress is to be noted: the greatest number means never.
func (r *rollout) hasDeadline() bool { return *r.d.Spec.ProgressDeadlineSeconds != math.MaxInt32 }

// timeLeft returns how long a rollout that is under way may go without progress, from now on; ok: one is.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/progress.go: (*DeploymentController).requeueStuckDeployment
func (r *rollout) timeLeft() (left time.Duration, ok bool) {
	current := r.progressing()
	over := current.Reason == "" || current.Reason == reasonAvailable || current.Reason == reasonTimedOut
	if over || !r.hasDeadline() || r.complete() {
		return 0, false
	}
	// a second more: the condition has whole seconds
	deadline := time.Duration(*r.d.Spec.ProgressDeadlineSeconds+1) * time.Second
	return deadline - r.config.Clock.Since(current.LastUpdateTime.Time), true
}

func isProgressing(each appsv1.DeploymentCondition) bool {
	return each.Type == appsv1.DeploymentProgressing
}

// progressing returns the condition Progressing, an empty one if there is none.
func (r *rollout) progressing() (found appsv1.DeploymentCondition) {
	if i := slices.IndexFunc(r.d.Status.Conditions, isProgressing); i >= 0 {
		found = r.d.Status.Conditions[i]
	}
	return found
}

// setCondition sets a condition. One with that status and reason stays as it is.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go: SetDeploymentCondition
func (r *rollout) setCondition(typ appsv1.DeploymentConditionType, status corev1.ConditionStatus,
	reason, message string) {
	now := metav1.NewTime(r.config.Clock.Now())
	set := appsv1.DeploymentCondition{Type: typ, Status: status, Reason: reason, Message: message,
		LastUpdateTime: now, LastTransitionTime: now}
	conditions := slices.Clone(r.d.Status.Conditions)
	i := slices.IndexFunc(conditions, func(each appsv1.DeploymentCondition) bool { return each.Type == typ })
	if i >= 0 && conditions[i].Status == status {
		if conditions[i].Reason == reason {
			return
		}
		set.LastTransitionTime = conditions[i].LastTransitionTime
	}
	if i >= 0 {
		conditions = slices.Delete(conditions, i, i+1)
	}
	r.d.Status.Conditions = append(conditions, set)
}

// updateStatus writes status and revision if they are not those of the deployment that was looked at.
func (r *rollout) updateStatus(ctx context.Context, before *appsv1.Deployment) error {
	if equality.Semantic.DeepEqual(before.Status, r.d.Status) && maps.Equal(before.Annotations, r.d.Annotations) {
		return nil
	}
	r.writes++
	return r.apps.Put().Namespace(r.d.Namespace).Resource("deployments").Name(r.d.Name).SubResource("status").
		Body(r.d).Do(ctx).Error()
}

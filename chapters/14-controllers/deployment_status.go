package controllers

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Reasons of the condition Progressing by which the controller knows later what it has written. kubectl rollout status
// reads the third.
const (
	reasonUpdated   = "ReplicaSetUpdated"
	reasonAvailable = "NewReplicaSetAvailable"
	reasonTimedOut  = "ProgressDeadlineExceeded"
	reasonPaused    = "DeploymentPaused"
)

// checkPaused notes that the deployment is paused or no longer paused: time that passes meanwhile is no lack of
// progress.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).checkPausedConditions
func (r *rollout) checkPaused() {
	switch reason := r.progressing().Reason; {
	case r.d.Spec.Paused && reason != reasonTimedOut:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !r.d.Spec.Paused && reason == reasonPaused:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentResumed",
			"Deployment is resumed")
	}
}

// calculateStatus adds up what the replica sets say, and returns when to look again; 0: when they say something else.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: calculateStatus
func (r *rollout) calculateStatus() (again time.Duration) {
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
		return r.estimateProgress(&before)
	}
	return 0
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
// It returns how long a rollout that is under way may still go without progress, otherwise 0.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/progress.go: (*DeploymentController).syncRolloutStatus
func (r *rollout) estimateProgress(before *appsv1.DeploymentStatus) (left time.Duration) {
	now, name := &r.d.Status, fmt.Sprintf("Deployment %q", r.d.Name)
	if r.newRS != nil {
		name = fmt.Sprintf("ReplicaSet %q", r.newRS.Name)
	}
	progress := now.UpdatedReplicas > before.UpdatedReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas
	switch {
	case now.Replicas == now.UpdatedReplicas && r.progressing().Reason == reasonAvailable:
		return 0 // it was over before
	case r.complete():
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonAvailable,
			name+" has successfully progressed.")
		return 0
	case progress:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, name+" is progressing.")
	}
	current := r.progressing()
	if current.Reason == "" || current.Reason == reasonAvailable || current.Reason == reasonTimedOut {
		return 0
	}
	// a second more: the condition has whole seconds
	deadline := time.Duration(*r.d.Spec.ProgressDeadlineSeconds)*time.Second + time.Second
	if left = deadline - r.config.Clock.Since(current.LastUpdateTime.Time); left <= 0 {
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut,
			name+" has timed out progressing.")
	}
	return left
}

// progressing returns the condition Progressing, an empty one if there is none.
func (r *rollout) progressing() (found appsv1.DeploymentCondition) {
	for _, each := range r.d.Status.Conditions {
		if each.Type == appsv1.DeploymentProgressing {
			return each
		}
	}
	return found
}

// setCondition sets a condition. One with that status and reason stays as it is, unless the reason
// is progress, of which the time is noted.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go: SetDeploymentCondition
func (r *rollout) setCondition(typ appsv1.DeploymentConditionType, status corev1.ConditionStatus,
	reason, message string) {
	now := metav1.NewTime(r.config.Clock.Now())
	set := appsv1.DeploymentCondition{Type: typ, Status: status, Reason: reason, Message: message,
		LastUpdateTime: now, LastTransitionTime: now}
	var conditions []appsv1.DeploymentCondition // the slice is the cache's
	for _, each := range r.d.Status.Conditions {
		if each.Type != typ {
			conditions = append(conditions, each)
			continue
		}
		if each.Status == status {
			if each.Reason == reason && reason != reasonUpdated {
				return
			}
			set.LastTransitionTime = each.LastTransitionTime
		}
	}
	r.d.Status.Conditions = append(conditions, set)
}

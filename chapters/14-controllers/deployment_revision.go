package controllers

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/dump"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Annotations by which the controller and kubectl understand each other.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"         // the greatest is the newest replica set's
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas" // size of the deployment when it was last scaled
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"     // the same, with the surge
)

// syncRevision keeps the new replica set's annotations and minReadySeconds, and the deployment's revision, up to date.
// A replica set to which a rollback returns gets a new revision, which makes it the newest again.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).getNewReplicaSet
func (r *rollout) syncRevision(ctx context.Context) error {
	updated, err := r.update(ctx, r.newRS, func(rs *appsv1.ReplicaSet) {
		r.copyAnnotations(rs)
		rs.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
	})
	if err != nil {
		return err
	}
	r.newRS = updated
	metav1.SetMetaDataAnnotation(&r.d.ObjectMeta, revisionAnnotation, updated.Annotations[revisionAnnotation])
	return nil
}

// copyAnnotations gives the new replica set the deployment's annotations, and a revision above all others.
func (r *rollout) copyAnnotations(rs *appsv1.ReplicaSet) {
	for key, value := range r.d.Annotations {
		switch key {
		case corev1.LastAppliedConfigAnnotation, revisionAnnotation, desiredAnnotation, maxAnnotation:
		default:
			metav1.SetMetaDataAnnotation(&rs.ObjectMeta, key, value)
		}
	}
	newest := int64(0)
	for _, old := range r.oldRSs {
		newest = max(newest, revisionOf(old))
	}
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, revisionAnnotation, fmt.Sprint(max(newest+1, revisionOf(rs))))
}

// revisionOf returns the revision of a replica set, 0 if it has none.
func revisionOf(rs *appsv1.ReplicaSet) int64 {
	revision, _ := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
	return revision
}

// createNewReplicaSet creates the replica set of the deployment's template. Its name follows from
// the template, so that a second attempt, made before the informer shows what the first has
// created, is refused.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).getNewReplicaSet
func (r *rollout) createNewReplicaSet(ctx context.Context) error {
	template, selector := r.d.Spec.Template.DeepCopy(), r.d.Spec.Selector.DeepCopy()
	hash := computeHash(template)
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	metav1.AddLabelToSelector(selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.d.Name + "-" + hash, Namespace: r.d.Namespace, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r.d, deploymentKind)},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(r.newSize(0)), MinReadySeconds: r.d.Spec.MinReadySeconds,
			Selector: selector, Template: *template},
	}
	r.copyAnnotations(rs)
	r.annotate(rs)
	err := r.apps.Post().Namespace(rs.Namespace).Resource("replicasets").Body(rs).Do(ctx).Into(rs)
	if err != nil {
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ReplicaSetCreateError",
			fmt.Sprintf("Failed to create new replica set %q: %v", rs.Name, err))
		return err
	}
	r.wrote(rs)
	r.newRS = rs
	r.scaled(rs, 0)
	metav1.SetMetaDataAnnotation(&r.d.ObjectMeta, revisionAnnotation, rs.Annotations[revisionAnnotation])
	r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetCreated",
		fmt.Sprintf("Created new replica set %q", rs.Name))
	return nil
}

// computeHash is written so that a deployment's replica sets have the names that they would have upstream.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_utils.go: ComputeHash
func computeHash(template *corev1.PodTemplateSpec) string {
	sum := fnv.New32a()
	fmt.Fprintf(sum, "%v", dump.ForHash(*template))
	return rand.SafeEncodeString(fmt.Sprint(sum.Sum32()))
}

// equalIgnoreHash reports whether two templates make the same pods.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go: EqualIgnoreHash
func equalIgnoreHash(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

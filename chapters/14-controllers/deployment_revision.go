package controllers

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/dump"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
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
	updated := r.newRS.DeepCopy() // the original came out of a cache
	r.copyAnnotations(updated)
	updated.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
	metav1.SetMetaDataAnnotation(&r.d.ObjectMeta, revisionAnnotation, updated.Annotations[revisionAnnotation])
	if maps.Equal(r.newRS.Annotations, updated.Annotations) &&
		r.newRS.Spec.MinReadySeconds == updated.Spec.MinReadySeconds {
		return nil
	}
	r.writes++
	err := r.apps.Put().Namespace(updated.Namespace).Resource("replicasets").Name(updated.Name).Body(updated).
		Do(ctx).Into(updated)
	if err == nil {
		r.wrote(updated)
		r.newRS = updated
	}
	return err
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
// created, is refused. If another template has the same hash, the collision is counted and goes
// into the next hash.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).getNewReplicaSet
func (r *rollout) createNewReplicaSet(ctx context.Context) error {
	template, selector := r.d.Spec.Template.DeepCopy(), r.d.Spec.Selector.DeepCopy()
	hash := computeHash(template, r.d.Status.CollisionCount)
	template.Labels = withLabel(template.Labels, hash)
	selector.MatchLabels = withLabel(selector.MatchLabels, hash)
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
	created := &appsv1.ReplicaSet{}
	r.writes++
	err := r.apps.Post().Namespace(rs.Namespace).Resource("replicasets").Body(rs).Do(ctx).Into(created)
	if apierrors.IsAlreadyExists(err) {
		return r.resolveCollision(ctx, rs.Name, err)
	}
	if err != nil {
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ReplicaSetCreateError",
			fmt.Sprintf("Failed to create new replica set %q: %v", rs.Name, err))
		return err
	}
	r.wrote(created)
	r.newRS = created
	if *rs.Spec.Replicas > 0 {
		r.scaled(rs.Name, 0, *rs.Spec.Replicas)
	}
	metav1.SetMetaDataAnnotation(&r.d.ObjectMeta, revisionAnnotation, rs.Annotations[revisionAnnotation])
	r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetCreated",
		fmt.Sprintf("Created new replica set %q", rs.Name))
	return nil
}

// resolveCollision looks at the replica set that has the new one's name. If it is the new one, the informer will show
// it, and the deployment will look again.
func (r *rollout) resolveCollision(ctx context.Context, name string, exists error) error {
	rs := &appsv1.ReplicaSet{}
	err := r.apps.Get().Namespace(r.d.Namespace).Resource("replicasets").Name(name).Do(ctx).Into(rs)
	if err != nil {
		return err
	}
	if metav1.IsControlledBy(rs, r.d) && equalIgnoreHash(&rs.Spec.Template, &r.d.Spec.Template) {
		r.newRS = rs
		return nil
	}
	r.d.Status.CollisionCount = new(ptr.Deref(r.d.Status.CollisionCount, 0) + 1)
	return exists
}

// computeHash is written so that a deployment's replica sets have the names that they would have upstream.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_utils.go: ComputeHash
func computeHash(template *corev1.PodTemplateSpec, collisions *int32) string {
	sum := fnv.New32a()
	fmt.Fprintf(sum, "%v", dump.ForHash(*template))
	if collisions != nil {
		_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(*collisions)))
	}
	return rand.SafeEncodeString(fmt.Sprint(sum.Sum32()))
}

// withLabel returns labels with the hash of a template.
func withLabel(labels map[string]string, hash string) map[string]string {
	added := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
	maps.Copy(added, labels)
	added[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return added
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

// oldestFirst compares two replica sets by the time of their creation.
func oldestFirst(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

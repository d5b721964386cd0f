package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// rollout is one look at one deployment.
type rollout struct {
	*DeploymentController

	d        *appsv1.Deployment   // a copy; its status and its revision are changed here, and written at the end
	newRS    *appsv1.ReplicaSet   // has the deployment's template; nil: there is none yet
	oldRSs   []*appsv1.ReplicaSet // the others, the oldest first
	estimate bool                 // whether there is progress is to be judged
}

// claimReplicaSets finds the replica sets of the deployment.
func (r *rollout) claimReplicaSets(ctx context.Context) error {
	all := r.config.ReplicaSets.Lister().Namespace(r.d.Namespace).List(labels.Everything())
	all, err := claim(ctx, &controllerRefManager{controller: r.d, kind: deploymentKind, apps: r.apps,
		selector: r.d.Spec.Selector, resource: "replicasets", client: r.apps}, all)
	slices.SortFunc(all, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, rs := range all {
		if r.newRS == nil && equalIgnoreHash(&rs.Spec.Template, &r.d.Spec.Template) {
			r.newRS = rs
		} else {
			r.oldRSs = append(r.oldRSs, rs)
		}
	}
	return err
}

// sync does the next step. A change of the number of pods is spread over all replica sets, also
// during a rollout, before that goes on.
func (r *rollout) sync(ctx context.Context) error {
	r.checkPaused()
	if r.newRS != nil {
		if err := r.syncRevision(ctx); err != nil {
			return err
		}
	}
	switch {
	case r.d.Spec.Paused:
		return errors.Join(r.scale(ctx), r.cleanup(ctx))
	case r.isScalingEvent():
		return r.scale(ctx)
	}
	r.estimate = true
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return r.rolloutRecreate(ctx)
	}
	return r.rolloutRolling(ctx)
}

// rolloutRolling takes pods from old replica sets as new ones become available.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/rolling.go: (*DeploymentController).rolloutRolling
func (r *rollout) rolloutRolling(ctx context.Context) error {
	if r.newRS == nil {
		return r.createNewReplicaSet(ctx)
	}
	size := r.newSize(*r.newRS.Spec.Replicas)
	if size != *r.newRS.Spec.Replicas {
		return r.scaleReplicaSet(ctx, r.newRS, size)
	}
	if scaled, err := r.scaleDownOld(ctx); err != nil || scaled {
		return err
	}
	return r.cleanup(ctx)
}

// newSize returns how many pods the new replica set, which has size, may have now.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go: NewRSNewReplicas
func (r *rollout) newSize(size int32) int32 {
	surge, _ := r.fenceposts()
	room := *r.d.Spec.Replicas + surge - r.sizes()
	if size > *r.d.Spec.Replicas || room <= 0 {
		return min(size, *r.d.Spec.Replicas)
	}
	return min(size+room, *r.d.Spec.Replicas)
}

// scaleDownOld takes from the old replica sets what can be spared: first pods that are not
// available anyway, then others, each from the oldest set on.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/rolling.go: (*DeploymentController).reconcileOldReplicaSets
// Differs: each replica set is written once; upstream writes it after each of the two steps.
func (r *rollout) scaleDownOld(ctx context.Context) (scaled bool, err error) {
	_, maxUnavailable := r.fenceposts()
	minAvailable, available := *r.d.Spec.Replicas-maxUnavailable, r.newRS.Status.AvailableReplicas
	unavailable := *r.newRS.Spec.Replicas - available
	room := r.sizes() - minAvailable - unavailable
	sizes := make([]int32, len(r.oldRSs))
	for i, rs := range r.oldRSs {
		broken := max(0, min(room, *rs.Spec.Replicas-rs.Status.AvailableReplicas))
		sizes[i], room, available = *rs.Spec.Replicas-broken, room-broken, available+rs.Status.AvailableReplicas
	}
	room = min(room, available-minAvailable)
	for i, rs := range r.oldRSs {
		spared := max(0, min(room, sizes[i]))
		room -= spared
		if size := sizes[i] - spared; size != *rs.Spec.Replicas {
			scaled = true
			if err := r.scaleReplicaSet(ctx, rs, size); err != nil {
				return true, err
			}
		}
	}
	return scaled, nil
}

// rolloutRecreate begins with the new replica set when no pod of an old one runs any more.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/recreate.go: (*DeploymentController).rolloutRecreate
func (r *rollout) rolloutRecreate(ctx context.Context) error {
	running := false
	for _, rs := range r.oldRSs {
		if err := r.scaleReplicaSet(ctx, rs, 0); err != nil {
			return err
		}
		running = running || *rs.Spec.Replicas > 0 || rs.Status.ObservedGeneration < rs.Generation ||
			rs.Status.Replicas > 0 || ptr.Deref(rs.Status.TerminatingReplicas, 0) > 0
	}
	if running {
		return nil
	}
	return r.rolloutRolling(ctx) // there is nothing to take from old ones, and no surge
}

// isScalingEvent reports whether the deployment has another size than its replica sets know of.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).isScalingEvent
func (r *rollout) isScalingEvent() bool {
	return slices.ContainsFunc(r.active(), func(rs *appsv1.ReplicaSet) bool {
		desired, known := rs.Annotations[desiredAnnotation]
		return known && desired != fmt.Sprint(*r.d.Spec.Replicas)
	})
}

// scale changes the number of pods. The only replica set that has pods gets the new size; if there
// are several, each gets its share, so that a rollout is neither hastened nor turned back.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).scale
// Differs: shares are of the sizes as they are; upstream's of the size that a replica set notes from the last time.
func (r *rollout) scale(ctx context.Context) error {
	active := r.active()
	if len(active) == 0 && r.newRS != nil {
		active = []*appsv1.ReplicaSet{r.newRS}
	}
	want, have := *r.d.Spec.Replicas, r.sizes()
	if len(active) > 1 && want > 0 && r.d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		surge, _ := r.fenceposts()
		want += surge
	}
	// The largest last: it gets what rounding has left.
	slices.SortStableFunc(active, func(a, b *appsv1.ReplicaSet) int { return int(*a.Spec.Replicas - *b.Spec.Replicas) })
	for i, rs := range active {
		size := want
		if i < len(active)-1 {
			size = int32(math.Round(float64(*rs.Spec.Replicas) * float64(want) / float64(have)))
		}
		have, want = have-*rs.Spec.Replicas, want-size
		if err := r.scaleReplicaSet(ctx, rs, size); err != nil {
			return err
		}
	}
	return nil
}

// active returns the replica sets that are to have pods.
func (r *rollout) active() []*appsv1.ReplicaSet {
	return slices.DeleteFunc(r.all(), func(rs *appsv1.ReplicaSet) bool { return *rs.Spec.Replicas == 0 })
}

// all returns the replica sets, the new one last.
func (r *rollout) all() []*appsv1.ReplicaSet {
	all := slices.Clone(r.oldRSs)
	if r.newRS != nil {
		all = append(all, r.newRS)
	}
	return all
}

// sizes returns how many pods all replica sets are to have together.
func (r *rollout) sizes() (sum int32) {
	for _, rs := range r.all() {
		sum += *rs.Spec.Replicas
	}
	return sum
}

// fenceposts returns how many pods there may be too many, and how many of those wanted may be missing. Shares are
// rounded up and down; if nothing is left of both, one may be missing, or nothing could move.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go: ResolveFenceposts
func (r *rollout) fenceposts() (surge, unavailable int32) {
	rolling, replicas := r.d.Spec.Strategy.RollingUpdate, int(*r.d.Spec.Replicas)
	if rolling == nil || replicas == 0 {
		return 0, 0
	}
	up, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, replicas, true) // the server has checked them
	down, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, replicas, false)
	if up == 0 && down == 0 {
		down = 1
	}
	return int32(up), int32(min(down, replicas))
}

// scaleReplicaSet writes a size, and notes in an annotation of which size of the deployment it is a part.
func (r *rollout) scaleReplicaSet(ctx context.Context, rs *appsv1.ReplicaSet, size int32) error {
	_, err := r.update(ctx, rs, func(updated *appsv1.ReplicaSet) {
		updated.Spec.Replicas = &size
		r.annotate(updated)
	})
	return err
}

// update writes a replica set if the change makes one.
func (r *rollout) update(ctx context.Context, rs *appsv1.ReplicaSet,
	change func(*appsv1.ReplicaSet)) (updated *appsv1.ReplicaSet, err error) {
	updated = rs.DeepCopy() // the original came out of a cache
	change(updated)
	if equality.Semantic.DeepEqual(rs, updated) {
		return updated, nil
	}
	if err := r.put(ctx, "replicasets", "", updated); err != nil {
		return nil, err
	}
	r.wrote(updated)
	r.scaled(updated, *rs.Spec.Replicas)
	return updated, nil
}

// scaled records that a replica set had another size before.
func (r *rollout) scaled(rs *appsv1.ReplicaSet, before int32) {
	direction := "up"
	switch {
	case *rs.Spec.Replicas == before:
		return
	case *rs.Spec.Replicas < before:
		direction = "down"
	}
	r.config.Recorder.Event(deploymentSource, r.d, corev1.EventTypeNormal, "ScalingReplicaSet",
		"Scaled %s replica set %s from %d to %d", direction, rs.Name, before, *rs.Spec.Replicas)
}

// annotate notes the size of the deployment in a replica set.
func (r *rollout) annotate(rs *appsv1.ReplicaSet) {
	surge, _ := r.fenceposts()
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, desiredAnnotation, fmt.Sprint(*r.d.Spec.Replicas))
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, maxAnnotation, fmt.Sprint(*r.d.Spec.Replicas+surge))
}

// cleanup deletes the oldest of the old replica sets that have no pods, when the rollout is over and there are more
// than are to be kept.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).cleanupDeployment
func (r *rollout) cleanup(ctx context.Context) error {
	if !r.d.Spec.Paused && !r.complete() {
		return nil
	}
	old := slices.DeleteFunc(slices.Clone(r.oldRSs),
		func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	slices.SortStableFunc(old, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	for _, rs := range old[:max(0, len(old)-int(*r.d.Spec.RevisionHistoryLimit))] {
		if *rs.Spec.Replicas != 0 || rs.Status.Replicas != 0 || rs.Generation > rs.Status.ObservedGeneration {
			continue
		}
		err := r.apps.Delete().Namespace(rs.Namespace).Resource("replicasets").Name(rs.Name).Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

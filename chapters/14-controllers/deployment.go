package controllers

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"

	deltafifo "listwatch/chapters/10-deltafifo"
)

// DeploymentController makes a replica set of each template that a deployment has had, and moves
// the pods from the old ones to the new one by changing numbers. Each is written with the version
// that it has looked at, and the name of a new replica set follows from its template; so nothing
// is written twice. The replica sets share the deployment's room. Before the controller decides,
// its informer must have shown its newest write, or it would give the same room to two of them.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/deployment_controller.go: DeploymentController
// Differs: upstream looks at once, and sizes one replica set by old sizes of another. One worker, which sizes all
// replica sets in one look, and writes each, and the status, once. A replica set of another owner that has the new
// one's name is an error; upstream counts the collision, and takes another name. An event does not say "up" or "down".
type DeploymentController struct {
	workload[*appsv1.Deployment, *appsv1.ReplicaSet]

	// Owned by the worker.
	written   uint64 // version of the newest replica set that was written
	writtenAt time.Time
}

// NewDeploymentController returns a controller that does nothing until [DeploymentController.Run].
func NewDeploymentController(config WorkloadConfig) *DeploymentController {
	return &DeploymentController{workload: workload[*appsv1.Deployment, *appsv1.ReplicaSet]{
		config: config, kind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		queue:    NewRateLimitingQueue(config.Clock, nil),
		selector: func(d *appsv1.Deployment) *metav1.LabelSelector { return d.Spec.Selector },
		owners:   config.Deployments, atOwners: resourceClient{config.Apps, "deployments"},
		owned: config.ReplicaSets, atOwned: resourceClient{config.Apps, "replicasets"}}}
}

// Run acts until ctx is done and all its goroutines have ended.
func (c *DeploymentController) Run(ctx context.Context) {
	runWorker(ctx, c.queue, c, follow(c.owners.Informer(), c.changed), follow(c.owned.Informer(), c.ownedChanged))
}

// behind reports whether the informer has not shown yet what this controller has written. As with
// expectations, it is given up after five minutes: etcd may have been restored from a backup.
func (c *DeploymentController) behind() bool {
	shown := c.owned.Informer().GetIndexer().LastStoreSyncResourceVersion()
	version, err := strconv.ParseUint(shown, 10, 64)
	return err == nil && version < c.written && c.config.Clock.Since(c.writtenAt) < ExpectationsTimeout
}

// reconcile is upstream's syncDeployment.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment: (*DeploymentController).syncDeployment
func (c *DeploymentController) reconcile(ctx context.Context, key string) (outcome, error) {
	deployment := c.find(key)
	switch {
	case deployment == nil:
		return outcome{}, nil
	case c.behind():
		return outcome{again: time.Second}, nil
	}
	claimed, err := c.claim(ctx, deployment)
	if err != nil {
		return outcome{}, err
	}
	r := newRollout(deployment, metav1.NewControllerRef(deployment, c.kind), claimed)
	r.revise()
	r.resize()
	err = c.write(ctx, r)
	r.calculateStatus(metav1.NewTime(c.config.Clock.Now()))
	if !equality.Semantic.DeepEqual(deployment.Status, r.d.Status) ||
		!maps.Equal(deployment.Annotations, r.d.Annotations) {
		err = cmp.Or(err, c.atOwners.write(ctx, r.d, "status")) // after an error, too
	}
	return outcome{}, ignoreGone(err)
}

// write writes the replica sets that are to change, and deletes old ones that are not kept.
func (c *DeploymentController) write(ctx context.Context, r *rollout) (err error) {
	for i, rs := range r.all {
		before := *r.shown[i].Spec.Replicas
		if rs.UID == "" && r.d.Spec.Paused || equality.Semantic.DeepEqual(rs, r.shown[i]) {
			continue
		}
		if err := c.atOwned.write(ctx, rs, ""); err != nil {
			return fmt.Errorf("write replica set %s: %w", keyOf(rs), err)
		}
		c.written, c.writtenAt = max(c.written, deltafifo.VersionOf(rs)), c.config.Clock.Now()
		if size := *rs.Spec.Replicas; size != before {
			c.config.Recorder.Event(corev1.EventSource{Component: "deployment-controller"}, r.d, corev1.EventTypeNormal,
				"ScalingReplicaSet", "Scaled replica set %s from %d to %d", rs.Name, before, size)
		}
	}
	for _, rs := range r.forgotten() {
		err = cmp.Or(err, ignoreGone(c.atOwned.delete(ctx, rs, metav1.DeletePropagationBackground)))
	}
	return err
}

// rollout is one look at one deployment. It decides what the replica sets should be; the controller then writes those
// that differ. The informer shows the result, and the next look is another rollout.
//
// Differs: takes the order of replica sets from their revisions, and whether they have pods from their status.
type rollout struct {
	d      *appsv1.Deployment   // a copy: its status and its revision are changed here
	shown  []*appsv1.ReplicaSet // the informer's: the new one first, then the others, the newest first
	all    []*appsv1.ReplicaSet // the same as they should be
	newRS  *appsv1.ReplicaSet   // the one in all with the deployment's template. Without a UID: not created yet
	oldRSs []*appsv1.ReplicaSet // the others in all
}

// newRollout finds the new replica set among those of a deployment by its name, or makes one.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go: FindNewReplicaSet
// Differs: upstream compares the templates, and so also knows one that has another name.
func newRollout(d *appsv1.Deployment, owner *metav1.OwnerReference, claimed []*appsv1.ReplicaSet) *rollout {
	slices.SortFunc(claimed, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(b), revisionOf(a)) })
	r := &rollout{d: d.DeepCopy(), shown: []*appsv1.ReplicaSet{newReplicaSet(d, owner)}}
	for _, rs := range claimed {
		if rs.Name == r.shown[0].Name {
			r.shown[0] = rs
		} else {
			r.shown = append(r.shown, rs)
		}
	}
	for _, rs := range r.shown {
		r.all = append(r.all, rs.DeepCopy()) // the original came out of a cache
	}
	r.newRS, r.oldRSs = r.all[0], r.all[1:]
	return r
}

// newReplicaSet returns a replica set of the deployment's template. Its name follows from the template, as upstream's
// does, so that a second attempt, made before the informer shows what the first has created, is refused.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).getNewReplicaSet
func newReplicaSet(d *appsv1.Deployment, owner *metav1.OwnerReference) *appsv1.ReplicaSet {
	template, selector, sum := d.Spec.Template.DeepCopy(), d.Spec.Selector.DeepCopy(), fnv.New32a()
	fmt.Fprintf(sum, "%v", dump.ForHash(*template))
	hash := rand.SafeEncodeString(fmt.Sprint(sum.Sum32()))
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	metav1.AddLabelToSelector(selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-" + hash, Namespace: d.Namespace, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*owner}},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: selector, Template: *template},
	}
}

// revisionAnnotation has the number that kubectl rollout history shows. The new replica set's is the greatest.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// revisionOf returns the revision of a replica set, 0 if it has none.
func revisionOf(rs *appsv1.ReplicaSet) int64 {
	revision, _ := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
	return revision
}

// revise gives the new replica set the deployment's annotations, and a revision above all others: also one to which a
// rollback returns.
//
// Differs: leaves out the history of revisions that a replica set had before.
func (r *rollout) revise() {
	for key, value := range r.d.Annotations {
		if key != corev1.LastAppliedConfigAnnotation && key != revisionAnnotation {
			metav1.SetMetaDataAnnotation(&r.newRS.ObjectMeta, key, value)
		}
	}
	newest := max(revisionOf(r.newRS), 1)
	if len(r.oldRSs) > 0 {
		newest = max(newest, revisionOf(r.oldRSs[0])+1)
	}
	metav1.SetMetaDataAnnotation(&r.newRS.ObjectMeta, revisionAnnotation, fmt.Sprint(newest))
	if r.newRS.UID != "" || !r.d.Spec.Paused {
		metav1.SetMetaDataAnnotation(&r.d.ObjectMeta, revisionAnnotation, fmt.Sprint(newest))
	}
}

// resize decides how many pods each replica set should have. While the deployment is paused, the newest one that has
// pods takes the difference. Otherwise the new one gets the pods for which there is room. To the strategy Recreate,
// there is none while an old one has pods.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go: NewRSNewReplicas
// Differs: the pods that a larger deployment gets during a rollout are all new; upstream gives each replica set a
// share, which it notes in annotations. Recreate does not wait for pods that are being deleted.
func (r *rollout) resize() {
	switch {
	case r.d.Spec.Paused:
		newest := max(0, slices.IndexFunc(r.all, func(rs *appsv1.ReplicaSet) bool { return *rs.Spec.Replicas > 0 }))
		size := &r.all[newest].Spec.Replicas
		*size = new(max(0, **size+*r.d.Spec.Replicas-r.sizes()))
	case r.d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType:
		surge, unavailable := r.fenceposts()
		room := max(0, *r.d.Spec.Replicas+surge-r.sizes())
		r.newRS.Spec.Replicas = new(min(*r.newRS.Spec.Replicas+room, *r.d.Spec.Replicas))
		r.scaleDownOld(*r.d.Spec.Replicas - unavailable)
	case !slices.ContainsFunc(r.oldRSs, hasPods):
		r.newRS.Spec.Replicas = r.d.Spec.Replicas
	default:
		for _, rs := range r.oldRSs {
			rs.Spec.Replicas = new(int32)
		}
	}
}

// scaleDownOld takes what can be spared, from the oldest set on: first pods that are not available anyway, then others.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/rolling.go: (*DeploymentController).reconcileOldReplicaSets
func (r *rollout) scaleDownOld(minAvailable int32) {
	available := availableOf(r.newRS)
	room := r.sizes() - minAvailable - (*r.newRS.Spec.Replicas - available)
	take := func(rs *appsv1.ReplicaSet, most int32) {
		spared := max(0, min(room, most))
		room -= spared
		rs.Spec.Replicas = new(*rs.Spec.Replicas - spared)
	}
	for _, rs := range slices.Backward(r.oldRSs) {
		take(rs, *rs.Spec.Replicas-availableOf(rs))
		available += availableOf(rs)
	}
	room = min(room, available-minAvailable)
	for _, rs := range slices.Backward(r.oldRSs) {
		take(rs, *rs.Spec.Replicas)
	}
}

// availableOf returns how many available pods a replica set will keep: its status may be older than its size.
func availableOf(rs *appsv1.ReplicaSet) int32 {
	return min(*rs.Spec.Replicas, rs.Status.AvailableReplicas)
}

// forgotten returns the oldest of the old replica sets that have no pods, if there are more than are to be kept.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: (*DeploymentController).cleanupDeployment
// Differs: does not wait for the end of the rollout.
func (r *rollout) forgotten() []*appsv1.ReplicaSet {
	kept := min(len(r.oldRSs), int(*r.d.Spec.RevisionHistoryLimit))
	return slices.DeleteFunc(slices.Clone(r.oldRSs[kept:]), hasPods)
}

// hasPods reports whether a replica set has pods, or its controller may just make some.
func hasPods(rs *appsv1.ReplicaSet) bool {
	return *rs.Spec.Replicas > 0 || rs.Status.Replicas > 0 || rs.Generation > rs.Status.ObservedGeneration
}

// sizes returns the number of pods that all replica sets should have together.
func (r *rollout) sizes() (sum int32) {
	for _, rs := range r.all {
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
	if rolling == nil {
		return 0, 0
	}
	up, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, replicas, true) // the server has checked them
	down, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, replicas, false)
	if up == 0 && down == 0 {
		down = 1
	}
	return int32(up), int32(min(down, replicas))
}

// calculateStatus adds up what the replica sets say.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/sync.go: calculateStatus
// Differs: has no condition Progressing, so kubectl rollout status does not give up after progressDeadlineSeconds;
// that of being available has no message.
func (r *rollout) calculateStatus(now metav1.Time) {
	status := appsv1.DeploymentStatus{ObservedGeneration: r.d.Generation, Conditions: r.d.Status.Conditions,
		UpdatedReplicas: r.newRS.Status.Replicas}
	for _, rs := range r.all {
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
	}
	status.UnavailableReplicas = max(0, r.sizes()-status.AvailableReplicas)
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
		Reason: "MinimumReplicasAvailable", LastUpdateTime: now, LastTransitionTime: now}
	if _, unavailable := r.fenceposts(); status.AvailableReplicas < *r.d.Spec.Replicas-unavailable {
		available.Status, available.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
	}
	if old := status.Conditions; len(old) == 0 || old[0].Status != available.Status {
		status.Conditions = []appsv1.DeploymentCondition{available}
	}
	r.d.Status = status
}

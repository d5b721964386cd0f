package controllers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// burstReplicas is how many pods a controller creates or deletes before it looks again.
const burstReplicas = 500

var replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// ReplicaSetController keeps as many pods as each replica set wants. What it counts are the pods
// in its informer's store, which is always a little old: [ControllerExpectations] say when it is
// too old.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: ReplicaSetController
// Differs: looks again when expectations have run out, and when another write of the status was faster; upstream waits
// for the next event, and tries once more. One worker; creates and deletes one after the other, where upstream begins
// with one and doubles. Looks through the pods of the namespace,
// where upstream has an index by owner. Has no condition ReplicaFailure and no ConsistencyStore, which since 1.36 also
// compares versions.
type ReplicaSetController struct {
	workloads
	expectations *ControllerExpectations // by UID of the replica set
}

// NewReplicaSetController adds the controller to the handlers of its informers. It acts on nothing
// before [ReplicaSetController.Run]. The error is that an informer has stopped.
func NewReplicaSetController(config WorkloadConfig) (*ReplicaSetController, error) {
	c := &ReplicaSetController{newWorkloads(config), NewControllerExpectations(config.Clock)}
	return c, errors.Join(follow(&c.synced, config.ReplicaSets.Informer(), c.changed),
		follow(&c.synced, config.Pods.Informer(), c.podChanged))
}

// Run acts until ctx is done and all its goroutines have ended.
func (c *ReplicaSetController) Run(ctx context.Context) { runWorker(ctx, c.queue, c, c.synced) }

// changed is told of every change of a replica set. old and rs may be two of one name.
func (c *ReplicaSetController) changed(old, rs *appsv1.ReplicaSet) {
	if old != nil && (rs == nil || rs.UID != old.UID) {
		c.expectations.DeleteExpectations(string(old.UID))
	}
	c.queue.Add(keyOf(cmp.Or(rs, old)))
}

// podChanged is told of every change of a pod. One that is marked counts as deleted: its replica
// set is to have another at once.
func (c *ReplicaSetController) podChanged(old, pod *corev1.Pod) {
	known := cmp.Or(pod, old)
	switch rs := string(controllerOf(known)); {
	case pod == nil || pod.DeletionTimestamp != nil:
		c.expectations.DeletionObserved(rs, keyOf(known))
	case old == nil:
		c.expectations.CreationObserved(rs)
	}
	selector := func(rs *appsv1.ReplicaSet) *metav1.LabelSelector { return rs.Spec.Selector }
	lookAtOwners(&c.workloads, c.config.ReplicaSets, selector, old, pod)
}

// reconcile is upstream's syncReplicaSet.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).syncReplicaSet
func (c *ReplicaSetController) reconcile(ctx context.Context, key string) (next outcome, err error) {
	namespace, name, _ := strings.Cut(key, "/")
	rs, err := c.config.ReplicaSets.Lister().Namespace(namespace).Get(name)
	if err != nil {
		return outcome{}, nil // it is gone: a lister has no other error
	}
	// Before the pods are read: a pod that is shown between the two is counted as well.
	needsSync := c.expectations.SatisfiedExpectations(string(rs.UID))
	all := c.config.Pods.Lister().Namespace(namespace).List(labels.Everything())
	pods, err := claim(ctx, &controllerRefManager{controller: rs, kind: replicaSetKind, apps: c.apps,
		selector: rs.Spec.Selector, resource: "pods", client: c.config.Client},
		slices.DeleteFunc(slices.Clone(all), isInactive))
	if err != nil {
		return outcome{}, err
	}
	switch {
	case !needsSync:
		next.again = ExpectationsTimeout + time.Second // a write that is not shown by then is given up
	case rs.DeletionTimestamp == nil:
		err = c.manageReplicas(ctx, rs, pods)
	}
	updated := rs.DeepCopy() // the original came out of a cache
	if available := c.calculateStatus(updated, pods, all); available > 0 {
		next.again = available
	}
	if !equality.Semantic.DeepEqual(rs.Status, updated.Status) {
		if statusErr := c.put(ctx, "replicasets", "status", updated); err == nil {
			err = statusErr
		}
	}
	return next, ignoreGone(err)
}

// manageReplicas creates the pods that are missing, or deletes those that are too many. What
// was not written is taken off the expectations: the informer will never show it.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).manageReplicas
func (c *ReplicaSetController) manageReplicas(ctx context.Context, rs *appsv1.ReplicaSet,
	pods []*corev1.Pod) (err error) {
	key, missing := string(rs.UID), int(*rs.Spec.Replicas)-len(pods)
	if missing > 0 {
		missing = min(missing, burstReplicas)
		c.expectations.ExpectCreations(key, missing)
		for range missing {
			if err == nil { // after a failure, the rest waits for the next look
				err = c.createPod(ctx, rs)
			}
			if err != nil {
				c.expectations.CreationObserved(key)
			}
		}
		return err
	}
	doomed := podsToDelete(pods, min(-missing, burstReplicas))
	c.expectations.ExpectDeletions(key, keysOf(doomed))
	for _, pod := range doomed {
		if failure := c.deletePod(ctx, rs, pod); failure != nil {
			c.expectations.DeletionObserved(key, keyOf(pod))
			err = failure
		}
	}
	return err
}

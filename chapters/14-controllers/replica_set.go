package controllers

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReplicaSetController keeps as many pods as each replica set wants. What it counts are the pods in its informer's
// store, which is always a little old: [ControllerExpectations] say when it is too old.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: ReplicaSetController
// Differs: looks again when expectations have run out, where upstream waits for the next event. One worker, which
// creates and deletes one pod after the other, all in one look. Looks through the pods of the namespace, where upstream
// has an index by owner. Writes no events, no condition ReplicaFailure and no fullyLabeledReplicas. Has no
// ConsistencyStore, which since 1.36 also compares versions. Deletes a pod in the version that it has looked at.
type ReplicaSetController struct {
	workload[*appsv1.ReplicaSet, *corev1.Pod]
	expectations *ControllerExpectations // by UID of the replica set
}

// NewReplicaSetController returns a controller that does nothing until [ReplicaSetController.Run].
func NewReplicaSetController(config WorkloadConfig) *ReplicaSetController {
	return &ReplicaSetController{expectations: NewControllerExpectations(config.Clock),
		workload: workload[*appsv1.ReplicaSet, *corev1.Pod]{
			config: config, kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
			queue:    NewRateLimitingQueue(config.Clock, nil),
			selector: func(rs *appsv1.ReplicaSet) *metav1.LabelSelector { return rs.Spec.Selector },
			owners:   config.ReplicaSets, atOwners: resourceClient{config.Apps, "replicasets"},
			owned: config.Pods, atOwned: resourceClient{config.Client, "pods"}}}
}

// Run acts until ctx is done and all its goroutines have ended.
func (c *ReplicaSetController) Run(ctx context.Context) {
	runWorker(ctx, c.queue, c, follow(c.owners.Informer(), c.changed), follow(c.owned.Informer(), c.podChanged))
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
	c.ownedChanged(old, pod)
}

// reconcile is upstream's syncReplicaSet.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).syncReplicaSet
func (c *ReplicaSetController) reconcile(ctx context.Context, key string) (next outcome, err error) {
	rs := c.find(key)
	if rs == nil {
		return outcome{}, nil
	}
	// Before the pods are read: a pod that is shown between the two is counted as well.
	needsSync := c.expectations.SatisfiedExpectations(string(rs.UID))
	claimed, err := c.claim(ctx, rs)
	if err != nil {
		return outcome{}, err
	}
	pods := slices.DeleteFunc(claimed, isInactive)
	if needsSync {
		err = c.manageReplicas(ctx, rs, pods)
	} else {
		next.again = ExpectationsTimeout + time.Second // a write that is not shown by then is given up
	}
	updated := rs.DeepCopy() // the original came out of a cache
	updated.Status = calculateStatus(rs, pods)
	if !equality.Semantic.DeepEqual(rs.Status, updated.Status) {
		err = cmp.Or(err, c.atOwners.write(ctx, updated, "status"))
	}
	return next, ignoreGone(err)
}

// manageReplicas creates the pods that are missing, or deletes those that are too many; after a
// failure, the rest waits for the next look. What was not written is taken off the
// expectations: the informer will never show it.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).manageReplicas
func (c *ReplicaSetController) manageReplicas(ctx context.Context, rs *appsv1.ReplicaSet,
	pods []*corev1.Pod) (err error) {
	key, missing := string(rs.UID), int(*rs.Spec.Replicas)-len(pods)
	if missing > 0 {
		c.expectations.ExpectCreations(key, missing)
		for range missing {
			if err == nil {
				err = c.createPod(ctx, rs)
			}
			if err != nil {
				c.expectations.CreationObserved(key)
			}
		}
	}
	if missing < 0 {
		doomed := podsToDelete(pods, -missing)
		var keys []string
		for _, pod := range doomed {
			keys = append(keys, keyOf(pod))
		}
		c.expectations.ExpectDeletions(key, keys)
		for _, pod := range doomed {
			if err == nil {
				err = c.atOwned.delete(ctx, pod, metav1.DeletePropagationBackground)
			}
			if err != nil {
				c.expectations.DeletionObserved(key, keyOf(pod))
			}
		}
	}
	return err
}

// createPod creates one pod from the template. The server completes its name.
func (c *ReplicaSetController) createPod(ctx context.Context, rs *appsv1.ReplicaSet) error {
	template := rs.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		GenerateName: rs.Name + "-", Namespace: rs.Namespace, Labels: template.Labels,
		Annotations: template.Annotations, Finalizers: template.Finalizers,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, c.kind)},
	}, Spec: template.Spec}
	return c.atOwned.write(ctx, pod, "")
}

// podsToDelete returns the n pods that will be missed least: those that are not ready, then the newest.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_utils.go: ActivePodsWithRanks
// Differs: compares neither nodes, phases and restarts nor the annotation pod-deletion-cost, nor logarithms of times.
func podsToDelete(pods []*corev1.Pod, n int) []*corev1.Pod {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		switch ready := isReady(a); {
		case ready == isReady(b):
			return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
		case ready:
			return 1
		}
		return -1
	})
	return pods[:n]
}

// calculateStatus counts the pods of a replica set.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set_utils.go: calculateStatus
// Differs: a pod is available as soon as it is ready, whatever minReadySeconds says. Does not count pods that are being
// deleted (terminatingReplicas).
func calculateStatus(rs *appsv1.ReplicaSet, pods []*corev1.Pod) appsv1.ReplicaSetStatus {
	status := appsv1.ReplicaSetStatus{ObservedGeneration: rs.Generation, Replicas: int32(len(pods)),
		Conditions: rs.Status.Conditions}
	for _, pod := range pods {
		if isReady(pod) {
			status.ReadyReplicas++
			status.AvailableReplicas++
		}
	}
	return status
}

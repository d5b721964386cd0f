package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// burstReplicas is how many pods a controller creates or deletes before it looks again.
const burstReplicas = 500

// appsPath is where the resources of apps/v1 are.
const appsPath = "/apis/apps/v1"

var replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// ReplicaSetConfig describes a [ReplicaSetController]. Client, the informers and Clock are
// required. The factories of the informers run them.
type ReplicaSetConfig struct {
	Client      *listwatch.RESTClient
	ReplicaSets informer.TypedInformer[*appsv1.ReplicaSet]
	Pods        informer.TypedInformer[*corev1.Pod]
	Recorder    *EventRecorder
	Clock       clock.WithTicker
	Probe       *probe.Probe // bound to the subject as which the controller appears
}

// ReplicaSetController keeps as many pods as each replica set wants. What it counts are the pods
// in its informer's store, which is always a little old: [ControllerExpectations] say when it is
// too old.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: ReplicaSetController
// Differs: looks again when expectations have run out; upstream waits for the next event. One worker; creates and
// deletes one after the other, where upstream begins with one and doubles. Looks through the pods of the namespace,
// where upstream has an index by owner. Has no condition ReplicaFailure and no ConsistencyStore, which since 1.36 also
// compares versions.
type ReplicaSetController struct {
	// Set by NewReplicaSetController, never changed.
	config       ReplicaSetConfig
	apps         *listwatch.RESTClient
	expectations *ControllerExpectations
	queue        *RateLimitingQueue
	worker       *worker
	synced       []<-chan struct{}
}

// NewReplicaSetController adds the controller to the handlers of its informers. It acts on nothing before
// [ReplicaSetController.Run]. The error is an informer's, which may have stopped.
func NewReplicaSetController(config ReplicaSetConfig) (*ReplicaSetController, error) {
	c := &ReplicaSetController{
		config:       config,
		apps:         config.Client.WithAPIPath(appsPath),
		expectations: NewControllerExpectations(config.Clock),
		queue:        NewRateLimitingQueue(config.Clock, config.Probe),
	}
	c.worker = &worker{queue: c.queue, reconciler: c, probe: config.Probe}
	return c, errors.Join(
		follow(&c.synced, config.ReplicaSets, c.changed),
		follow(&c.synced, config.Pods, c.podChanged))
}

// Run acts until ctx is done and all its goroutines have ended. It does not begin before the
// informers have shown what there is: until then it would take pods for missing.
func (c *ReplicaSetController) Run(ctx context.Context) {
	var g routine.Group
	g.Go(ctx, "replicaset.waitingLoop", c.queue.Run)
	if informer.WaitFor(ctx, c.synced...) {
		g.Go(ctx, "replicaset.worker", c.worker.run)
	}
	g.Wait()
}

// changed is told of every change of a replica set. old and rs may be two of one name.
func (c *ReplicaSetController) changed(old, rs *appsv1.ReplicaSet) {
	any := cmp.Or(rs, old)
	if old != nil && (rs == nil || rs.UID != old.UID) {
		c.expectations.DeleteExpectations(keyOf(any))
	}
	c.queue.Add(keyOf(any))
}

// podChanged is told of every change of a pod. One that is marked counts as deleted: its replica
// set is to have another at once.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).updatePod
func (c *ReplicaSetController) podChanged(old, pod *corev1.Pod) {
	before, rs := c.ownerOf(old), c.ownerOf(pod)
	if before != "" && before != rs {
		c.queue.Add(before)
	}
	switch {
	case pod == nil:
		c.expectations.DeletionObserved(before, keyOf(old))
	case rs == "" && (old == nil || before != "" || !maps.Equal(old.Labels, pod.Labels)):
		c.addMatching(pod)
	case rs != "" && pod.DeletionTimestamp != nil:
		c.expectations.DeletionObserved(rs, keyOf(pod))
	case rs != "" && old == nil:
		c.expectations.CreationObserved(rs)
	}
	if rs != "" {
		c.queue.Add(rs)
	}
}

// ownerOf returns the key of the replica set that controls a pod, "" if there is none.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).resolveControllerRef
func (c *ReplicaSetController) ownerOf(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != replicaSetKind.Kind {
		return ""
	}
	rs, err := c.config.ReplicaSets.Lister().Namespace(pod.Namespace).Get(ref.Name)
	if err != nil || rs.UID != ref.UID { // gone, or another one of that name
		return ""
	}
	return keyOf(rs)
}

// addMatching asks for a look at each replica set that may want to adopt a pod.
func (c *ReplicaSetController) addMatching(pod *corev1.Pod) {
	for _, rs := range c.config.ReplicaSets.Lister().Namespace(pod.Namespace).List(labels.Everything()) {
		selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
		if err == nil && metav1.GetControllerOfNoCopy(pod) == nil && selector.Matches(labels.Set(pod.Labels)) {
			c.queue.Add(keyOf(rs))
		}
	}
}

// reconcile is upstream's syncReplicaSet.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).syncReplicaSet
func (c *ReplicaSetController) reconcile(ctx context.Context, key string) (outcome, error) {
	namespace, name, _ := strings.Cut(key, "/")
	rs, err := c.config.ReplicaSets.Lister().Namespace(namespace).Get(name)
	if err != nil { // NotFound: a lister has no other error
		c.expectations.DeleteExpectations(key)
		return outcome{did: key + " is gone"}, nil
	}
	// Before the pods are read: a pod that is shown between the two is counted as well.
	needsSync := c.expectations.SatisfiedExpectations(key)
	all := c.config.Pods.Lister().Namespace(namespace).List(labels.Everything())
	pods, err := c.claimPods(ctx, rs, slices.DeleteFunc(slices.Clone(all), isInactive))
	if err != nil {
		return outcome{}, err
	}
	did := outcome{did: fmt.Sprintf("%s has %d of %d pods", key, len(pods), *rs.Spec.Replicas)}
	switch {
	case !needsSync:
		did.did += ", and waits to see its own writes"
		did.again, did.why = ExpectationsTimeout+time.Second, "what is not shown by then never will be"
	case rs.DeletionTimestamp == nil:
		did.wrote, err = c.manageReplicas(ctx, rs, pods)
	}
	status, next := c.calculateStatus(rs, pods, all)
	if next > 0 {
		did.again, did.why = next, "a pod will be available then"
	}
	if wrote, statusErr := c.updateStatus(ctx, rs, status); err == nil {
		did.wrote, err = did.wrote+wrote, statusErr
	}
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return did, nil // it has been deleted, or no pod can be created any more
	}
	return did, err
}

// claimPods returns the pods of a replica set.
func (c *ReplicaSetController) claimPods(ctx context.Context, rs *appsv1.ReplicaSet,
	pods []*corev1.Pod) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector of %s: %w", keyOf(rs), err)
	}
	return claim(ctx, &controllerRefManager{controller: rs, kind: replicaSetKind, plural: "replicasets",
		apps: c.apps, selector: selector, resource: "pods", client: c.config.Client}, pods)
}

// manageReplicas creates the pods that are missing, or deletes those that are too many, and
// returns how many. What was not written is taken off the expectations: the informer will never
// show it.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).manageReplicas
func (c *ReplicaSetController) manageReplicas(ctx context.Context, rs *appsv1.ReplicaSet,
	pods []*corev1.Pod) (wrote int, err error) {
	key, missing := keyOf(rs), int(*rs.Spec.Replicas)-len(pods)
	if missing > 0 {
		missing = min(missing, burstReplicas)
		c.expectations.ExpectCreations(key, missing)
		for wrote < missing && err == nil {
			if err = c.createPod(ctx, rs); err == nil {
				wrote++
			}
		}
		for range missing - wrote {
			c.expectations.CreationObserved(key)
		}
		return wrote, err
	}
	if missing == 0 {
		return 0, nil
	}
	doomed := podsToDelete(pods, min(-missing, burstReplicas))
	c.expectations.ExpectDeletions(key, keysOf(doomed))
	for _, pod := range doomed {
		if failure := c.deletePod(ctx, rs, pod); failure != nil {
			c.expectations.DeletionObserved(key, keyOf(pod))
			err = failure
			continue
		}
		wrote++
	}
	return wrote, err
}

package controllers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	deltafifo "listwatch/chapters/10-deltafifo"
)

var (
	deploymentKind   = appsv1.SchemeGroupVersion.WithKind("Deployment")
	deploymentSource = corev1.EventSource{Component: "deployment-controller"}
)

// DeploymentController makes a replica set of each template that a deployment has had, and moves
// the pods from the old ones to the new one by changing numbers. Each is written with the version
// that it has looked at, and the name of a new replica set follows from its template; so nothing
// is written twice. But what it wrote to one replica set is room that another may not have: before
// it looks, its informer must have shown the newest of its writes.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/deployment_controller.go: DeploymentController
// Differs: waits until its informer has shown what it wrote last, or five minutes: upstream looks at once, and
// sizes one replica set by old sizes of another. One worker. Writes the status once a look, where upstream writes
// revision, pause and progress one after the other. Whether pods of old replica sets still run it takes from their
// status, and not from pods. A replica set of another owner that has the new one's name is an error for as long as
// it is there; upstream counts the collision, and takes another name. A progress deadline of MaxInt32 is 68 years,
// and not never. The rollback of extensions/v1beta1, which no kubectl has asked for since 1.16, is left out, and so
// is the history of revisions that a replica set had before.
type DeploymentController struct {
	workloads

	// Owned by the worker.
	written   uint64 // version of the newest replica set that was written
	writtenAt time.Time
}

// NewDeploymentController adds the controller to the handlers of its informers. It acts on nothing
// before [DeploymentController.Run]. The error is that an informer has stopped.
func NewDeploymentController(config WorkloadConfig) (*DeploymentController, error) {
	c := &DeploymentController{workloads: newWorkloads(config)}
	return c, errors.Join(
		follow(&c.synced, config.Deployments.Informer(),
			func(old, d *appsv1.Deployment) { c.queue.Add(keyOf(cmp.Or(d, old))) }),
		follow(&c.synced, config.ReplicaSets.Informer(), func(old, rs *appsv1.ReplicaSet) {
			selector := func(d *appsv1.Deployment) *metav1.LabelSelector { return d.Spec.Selector }
			lookAtOwners(&c.workloads, config.Deployments, selector, old, rs)
		}))
}

// Run acts until ctx is done and all its goroutines have ended.
func (c *DeploymentController) Run(ctx context.Context) { runWorker(ctx, c.queue, c, c.synced) }

// wrote notes a replica set that the server has answered with.
func (c *DeploymentController) wrote(rs *appsv1.ReplicaSet) {
	c.written, c.writtenAt = max(c.written, deltafifo.VersionOf(rs)), c.config.Clock.Now()
}

// behind reports whether the informer has not shown yet what this controller has written. As with
// expectations, it is given up after five minutes: etcd may have been restored from a backup.
func (c *DeploymentController) behind() bool {
	shown := c.config.ReplicaSets.Informer().GetIndexer().LastStoreSyncResourceVersion()
	version, err := strconv.ParseUint(shown, 10, 64)
	return err == nil && version < c.written && c.config.Clock.Since(c.writtenAt) < ExpectationsTimeout
}

// reconcile is upstream's syncDeployment.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment: (*DeploymentController).syncDeployment
func (c *DeploymentController) reconcile(ctx context.Context, key string) (outcome, error) {
	namespace, name, _ := strings.Cut(key, "/")
	deployment, err := c.config.Deployments.Lister().Namespace(namespace).Get(name)
	if err != nil {
		return outcome{}, nil // it is gone: a lister has no other error
	}
	if c.behind() {
		return outcome{again: time.Second}, nil
	}
	r := &rollout{DeploymentController: c, d: deployment.DeepCopy()} // the original came out of a cache
	if err = r.claimReplicaSets(ctx); err == nil && r.d.DeletionTimestamp == nil {
		err = r.sync(ctx)
	}
	var next outcome
	if err == nil {
		next.again = r.calculateStatus()
	}
	if !equality.Semantic.DeepEqual(deployment.Status, r.d.Status) ||
		!maps.Equal(deployment.Annotations, r.d.Annotations) {
		// After an error, too: it may be what the status has to say.
		if statusErr := r.put(ctx, "deployments", "status", r.d); err == nil {
			err = statusErr
		}
	}
	return next, ignoreGone(err)
}

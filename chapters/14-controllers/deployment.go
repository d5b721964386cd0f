package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

var (
	deploymentKind   = appsv1.SchemeGroupVersion.WithKind("Deployment")
	deploymentSource = corev1.EventSource{Component: "deployment-controller"}
)

// DeploymentConfig describes a [DeploymentController]. Client, the informers and Clock are
// required. The factories of the informers run them.
type DeploymentConfig struct {
	Client      *listwatch.RESTClient
	Deployments informer.TypedInformer[*appsv1.Deployment]
	ReplicaSets informer.TypedInformer[*appsv1.ReplicaSet]
	Recorder    *EventRecorder
	Clock       clock.WithTicker
	Probe       *probe.Probe // bound to the subject as which the controller appears
}

// DeploymentController makes a replica set of each template that a deployment has had, and moves
// the pods from the old ones to the new one by changing numbers. Each is written with the version
// that it has looked at, and the name of a new replica set follows from its template; so nothing
// is written twice. But what it wrote to one replica set is room that another may not have: before
// it looks, its informer must have shown the newest of its writes.
//
// Upstream: k8s.io/kubernetes/pkg/controller/deployment/deployment_controller.go: DeploymentController
// Differs: one worker. Writes the status once a look, where upstream writes revision, pause and progress one after the
// other. Whether pods of old replica sets still run it takes from their status, and not from pods. The rollback of
// extensions/v1beta1, which no kubectl has asked for since 1.16, is left out, and so is the history of revisions that a
// replica set had before.
type DeploymentController struct {
	// Set by NewDeploymentController, never changed.
	config DeploymentConfig
	apps   *listwatch.RESTClient
	queue  *RateLimitingQueue
	worker *worker
	synced []<-chan struct{}

	// Owned by the worker.
	written   uint64 // version of the newest replica set that was written
	writtenAt time.Time
}

// NewDeploymentController adds the controller to the handlers of its informers. It acts on nothing before
// [DeploymentController.Run]. The error is an informer's, which may have stopped.
func NewDeploymentController(config DeploymentConfig) (*DeploymentController, error) {
	c := &DeploymentController{config: config, apps: config.Client.WithAPIPath(appsPath),
		queue: NewRateLimitingQueue(config.Clock, config.Probe)}
	c.worker = &worker{queue: c.queue, reconciler: c, probe: config.Probe}
	return c, errors.Join(
		follow(&c.synced, config.Deployments, c.changed),
		follow(&c.synced, config.ReplicaSets, c.replicaSetChanged))
}

// Run acts until ctx is done and all its goroutines have ended.
func (c *DeploymentController) Run(ctx context.Context) {
	var g routine.Group
	g.Go(ctx, "deployment.waitingLoop", c.queue.Run)
	if informer.WaitFor(ctx, c.synced...) {
		g.Go(ctx, "deployment.worker", c.worker.run)
	}
	g.Wait()
}

func (c *DeploymentController) changed(old, d *appsv1.Deployment) { c.queue.Add(keyOf(cmp.Or(d, old))) }

// replicaSetChanged is told of every change of a replica set. Its deployment is to look, the
// one that had it before, and, if it is an orphan, each that may want it.
func (c *DeploymentController) replicaSetChanged(old, rs *appsv1.ReplicaSet) {
	for _, each := range []*appsv1.ReplicaSet{old, rs} {
		if each == nil {
			continue
		}
		ref := metav1.GetControllerOfNoCopy(each)
		for _, d := range c.config.Deployments.Lister().Namespace(each.Namespace).List(labels.Everything()) {
			if ref != nil && ref.UID == d.UID || ref == nil && selects(d.Spec.Selector, each.Labels) {
				c.queue.Add(keyOf(d))
			}
		}
	}
}

// selects reports whether a selector, which may be invalid, selects an object with these labels.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

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
	if err != nil { // NotFound: a lister has no other error
		return outcome{did: key + " is gone"}, nil
	}
	if c.behind() {
		return outcome{did: key + " waits until it is shown what it wrote", again: time.Second,
			why: "its informer is behind"}, nil
	}
	r := &rollout{DeploymentController: c, d: deployment.DeepCopy()} // the original came out of a cache
	if err = r.claimReplicaSets(ctx); err == nil && r.d.DeletionTimestamp == nil {
		err = r.sync(ctx)
	}
	if err == nil {
		r.calculateStatus()
	}
	// After an error, too: it may be what the status has to say.
	if statusErr := r.updateStatus(ctx, deployment); err == nil {
		err = statusErr
	}
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		err = nil // it has been deleted, or nothing can be created any more
	}
	left, _ := r.timeLeft()
	return outcome{did: fmt.Sprintf("%s has %d of %d pods", key, r.d.Status.Replicas, *r.d.Spec.Replicas),
		wrote: r.writes, again: left, why: "it may have made no progress by then"}, err
}

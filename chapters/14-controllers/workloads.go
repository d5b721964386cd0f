package controllers

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/routine"
)

// WorkloadConfig describes a [ReplicaSetController] or a [DeploymentController]. Client, Clock and
// the informers of what it reads are required. The factories of the informers run them.
type WorkloadConfig struct {
	Client      *listwatch.RESTClient
	Deployments informer.TypedInformer[*appsv1.Deployment] // read by the DeploymentController
	ReplicaSets informer.TypedInformer[*appsv1.ReplicaSet]
	Pods        informer.TypedInformer[*corev1.Pod] // read by the ReplicaSetController
	Recorder    *EventRecorder
	Clock       clock.WithTicker
}

// workloads is what the two controllers have in common. They report nothing: the picture is of the
// way of pods.
type workloads struct {
	// Set by newWorkloads and follow, never changed.
	config WorkloadConfig
	apps   *listwatch.RESTClient // for deployments and replica sets
	queue  *RateLimitingQueue
	synced []<-chan struct{}
}

func newWorkloads(config WorkloadConfig) workloads {
	return workloads{config: config, apps: config.Client.WithAPIPath("/apis/apps/v1"),
		queue: NewRateLimitingQueue(config.Clock, nil)}
}

// runWorker lets one worker act until ctx is done. It does not begin before the informers have
// shown what there is: until then it would take objects for missing.
func runWorker(ctx context.Context, queue *RateLimitingQueue, r reconciler, synced []<-chan struct{}) {
	var g routine.Group
	g.Go(ctx, "controller.waitingLoop", queue.Run)
	if informer.WaitFor(ctx, synced...) {
		g.Go(ctx, "controller.worker", (&worker{queue: queue, reconciler: r}).run)
	}
	g.Wait()
}

// put writes an object of apps/v1, or its subresource, with the version that was looked at. The
// object becomes what the server answers with.
func (c *workloads) put(ctx context.Context, resource, subresource string, obj processor.Object) error {
	return c.apps.Put().Namespace(obj.GetNamespace()).Resource(resource).Name(obj.GetName()).
		SubResource(subresource).Body(obj).Do(ctx).Into(obj)
}

// ignoreGone leaves out errors after which nothing is to be done: what was looked at has been
// deleted, or nothing can be created any more.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// follow adds a quiet handler to an informer, and to synced what says that it was told what there
// is. f is told which object has changed: old is nil if it has come, obj if it is gone. An update
// without a new version is left out. The error is that the informer has stopped.
func follow[T metav1.Object](synced *[]<-chan struct{}, from *informer.SharedIndexInformer,
	f func(old, obj T)) error {
	var none T
	handler := processor.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { f(none, obj.(T)) },
		UpdateFunc: func(old, obj any) {
			if before, now := old.(T), obj.(T); before.GetResourceVersion() != now.GetResourceVersion() {
				f(before, now)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(deltafifo.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if last, known := obj.(T); known { // or nothing but its key is
				f(last, none)
			}
		},
	}
	registration, err := from.AddEventHandlerWithOptions(handler, informer.HandlerOptions{Quiet: true})
	if err != nil {
		return fmt.Errorf("follow %T: %w", none, err)
	}
	*synced = append(*synced, registration.HasSyncedChecker())
	return nil
}

// lookAtOwners asks for a look at each owner that controls an object, or did before it changed; and,
// if the object is an orphan, at each that may want it.
//
// Upstream: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go: (*ReplicaSetController).updatePod
func lookAtOwners[O processor.Object, T interface {
	comparable
	processor.Object
}](c *workloads, owners informer.TypedInformer[O], selector func(O) *metav1.LabelSelector, old, obj T) {
	var none T
	for _, owner := range owners.Lister().Namespace(cmp.Or(obj, old).GetNamespace()).List(labels.Everything()) {
		for _, version := range []T{old, obj} {
			if version == none {
				continue
			}
			uid := controllerOf(version)
			if uid == owner.GetUID() || uid == "" && selects(selector(owner), version.GetLabels()) {
				c.queue.Add(keyOf(owner))
				break
			}
		}
	}
}

// selects reports whether a selector, which may be invalid, selects an object with these labels.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
)

// WorkloadConfig describes a [ReplicaSetController] or a [DeploymentController]. All but the recorder
// is required. The factories of the informers run them.
type WorkloadConfig struct {
	Client      *listwatch.RESTClient
	Apps        *listwatch.RESTClient // for apps/v1
	Deployments informer.TypedInformer[*appsv1.Deployment]
	ReplicaSets informer.TypedInformer[*appsv1.ReplicaSet]
	Pods        informer.TypedInformer[*corev1.Pod]
	Recorder    *EventRecorder
	Clock       clock.WithTicker
}

// workload is a controller of objects that own others. It reports nothing: the picture is of the way of pods.
type workload[O, T interface {
	comparable
	processor.Object
}] struct {
	config   WorkloadConfig
	kind     schema.GroupVersionKind // the owners'
	selector func(owner O) *metav1.LabelSelector
	owners   informer.TypedInformer[O]
	owned    informer.TypedInformer[T]
	atOwners resourceClient
	atOwned  resourceClient
	queue    *RateLimitingQueue
}

// find returns the owner behind a key, nil if it is gone or is being deleted.
//
// Differs: upstream goes on to write the status of an owner that is being deleted.
func (c *workload[O, T]) find(key string) (none O) {
	namespace, name, _ := strings.Cut(key, "/")
	owner, err := c.owners.Lister().Namespace(namespace).Get(name)
	if err != nil || owner.GetDeletionTimestamp() != nil {
		return none
	}
	return owner
}

// changed asks for a look at an owner.
func (c *workload[O, T]) changed(old, owner O) { c.queue.Add(keyOf(cmp.Or(owner, old))) }

// ownedChanged asks for a look at the owner that controls an object, or, if it is an orphan, at each that may want it.
//
// Differs: leaves out the owner that had the object before. Either it has released the object itself, or another client
// has, and the owner learns of that at its next event.
func (c *workload[O, T]) ownedChanged(old, obj T) {
	known := cmp.Or(obj, old)
	uid := controllerOf(known)
	for _, owner := range c.owners.Lister().Namespace(known.GetNamespace()).List(labels.Everything()) {
		if uid == owner.GetUID() || uid == "" && c.wants(owner, known) {
			c.queue.Add(keyOf(owner))
		}
	}
}

// wants reports whether the selector of an owner selects an object.
func (c *workload[O, T]) wants(owner O, obj T) bool {
	selector, _ := metav1.LabelSelectorAsSelector(c.selector(owner)) // the server has checked it
	return selector.Matches(labels.Set(obj.GetLabels()))
}

// claim returns what belongs to an owner, after adoptions and releases. Labels say what it wants; the reference to a
// controller, of which an object has at most one, says what it has, and only that counts.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_ref_manager.go: (*BaseControllerRefManager).ClaimObject
// Differs: ends at the first error, and the next look goes on. Adopts pods that have ended, too.
func (c *workload[O, T]) claim(ctx context.Context, owner O) (claimed []T, err error) {
	for _, obj := range c.owned.Lister().Namespace(owner.GetNamespace()).List(labels.Everything()) {
		switch uid, wanted := controllerOf(obj), c.wants(owner, obj); {
		case uid == owner.GetUID() && wanted:
			claimed = append(claimed, obj)
		case uid == owner.GetUID():
			err = c.atOwned.release(ctx, obj, uid)
		case uid == "" && wanted && obj.GetDeletionTimestamp() == nil:
			claimed, err = append(claimed, obj), c.adopt(ctx, owner, obj)
		}
		if err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// adopt makes owner the controller of obj. First it reads the owner at the server: if that is
// being deleted, or is another one of that name, what the informer shows is too old to adopt by.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_ref_manager.go: RecheckDeletionTimestamp
func (c *workload[O, T]) adopt(ctx context.Context, owner O, obj T) error {
	fresh, err := c.atOwners.get(ctx, owner.GetNamespace(), owner.GetName(), owner.GetUID())
	if err != nil {
		return err
	}
	if fresh == nil || fresh.GetDeletionTimestamp() != nil {
		return fmt.Errorf("adopt %s: %s is being deleted, or is another object by now", keyOf(obj), keyOf(owner))
	}
	refs := append(slices.Clone(obj.GetOwnerReferences()), *metav1.NewControllerRef(owner, c.kind))
	return c.atOwned.patch(ctx, obj, "ownerReferences", refs)
}

// controllerOf returns the UID of the controller of an object, "" if it has none.
func controllerOf(obj metav1.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return ref.UID
	}
	return ""
}

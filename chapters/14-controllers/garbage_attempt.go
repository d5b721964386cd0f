package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// dependent is an object that names an owner.
type dependent struct {
	*monitor
	metav1.Object
	blocks bool // the owner's deletion in the foreground
}

// dependentsOf returns what the informers show that names an object of kind m as an owner.
func (m *monitor) dependentsOf(owner metav1.Object) (found []dependent) {
	for _, other := range m.gc.monitors {
		key := ownerKey(m.kind.Kind, owner.GetName())
		objs, _ := other.informer.GetIndexer().ByIndex(ownersIndex, key) // the index was added
		for _, obj := range objs {
			accessor, err := meta.Accessor(obj)
			if err != nil || m.namespaced && accessor.GetNamespace() != owner.GetNamespace() {
				continue
			}
			for _, ref := range accessor.GetOwnerReferences() {
				if ref.UID == owner.GetUID() {
					found = append(found, dependent{other, accessor, ptr.Deref(ref.BlockOwnerDeletion, false)})
				}
			}
		}
	}
	return found
}

// addDependents asks for a look at what an object owns, and reports whether some of it blocks the object's deletion.
func (m *monitor) addDependents(owner metav1.Object) (blocked bool) {
	for _, each := range m.dependentsOf(owner) {
		blocked = blocked || each.blocks
		m.gc.queue.Add(each.key(each))
	}
	return blocked
}

// reconcile looks at one object, as an owner and as a dependent.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/graph_builder.go: (*GraphBuilder).processGraphChanges
func (c *GarbageCollector) reconcile(ctx context.Context, key string) (outcome, error) {
	path, rest, _ := strings.Cut(key, " ")
	namespace, name, _ := strings.Cut(rest, "/")
	m := c.monitors[path]
	obj := m.cached(namespace, name)
	switch {
	case obj == nil:
		return outcome{did: key + " is gone"}, nil
	case obj.GetDeletionTimestamp() == nil:
		return c.attemptToDelete(ctx, m, obj)
	case slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return outcome{did: key + " leaves orphans"}, c.orphanDependents(ctx, m, obj)
	case slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return outcome{did: key + " waits for its dependents"}, c.processDeletingDependents(ctx, m, obj)
	}
	return outcome{did: key + " is being deleted: nothing to do"}, nil
}

// orphanDependents takes the reference to an owner out of what names it, and lets the owner go.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: (*GarbageCollector).orphanDependents
func (c *GarbageCollector) orphanDependents(ctx context.Context, m *monitor, owner metav1.Object) error {
	for _, each := range m.dependentsOf(owner) {
		if err := each.release(ctx, each, owner.GetUID()); err != nil {
			return err
		}
	}
	return m.removeFinalizer(ctx, owner, metav1.FinalizerOrphanDependents)
}

// processDeletingDependents lets an owner go when nothing that is left blocks its deletion, and
// otherwise has that deleted.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector: (*GarbageCollector).processDeletingDependentsItem
func (c *GarbageCollector) processDeletingDependents(ctx context.Context, m *monitor, owner metav1.Object) error {
	if m.addDependents(owner) {
		return nil // the last one's end leads here again
	}
	return m.removeFinalizer(ctx, owner, metav1.FinalizerDeleteDependents)
}

// attemptToDelete deletes an object if the server says that none of its owners exists, or that
// those left wait for its deletion.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector: (*GarbageCollector).attemptToDeleteItem
func (c *GarbageCollector) attemptToDelete(ctx context.Context, m *monitor, obj metav1.Object) (outcome, error) {
	key := m.key(obj)
	if c.allSolid(obj) {
		return outcome{did: key + " has its owners: nothing to do"}, nil
	}
	latest, err := m.get(ctx, obj.GetNamespace(), obj.GetName())
	if apierrors.IsNotFound(err) || err == nil && latest.GetUID() != obj.GetUID() {
		return outcome{did: key + " is another one by now"}, nil // of which the informer will tell
	}
	if err != nil {
		return outcome{}, err
	}
	var solid, gone, waiting []types.UID
	for _, ref := range latest.GetOwnerReferences() {
		owner, err := c.ownerAtServer(ctx, latest, ref)
		switch {
		case err != nil:
			return outcome{}, err
		case owner == nil:
			gone = append(gone, ref.UID)
		case waitsForDependents(owner):
			waiting = append(waiting, ref.UID)
		default:
			solid = append(solid, ref.UID)
		}
	}
	switch {
	case len(solid) > 0 && len(gone)+len(waiting) > 0:
		return outcome{did: key + " has one owner less", wrote: 1}, m.release(ctx, latest, append(gone, waiting...)...)
	case len(solid) > 0:
		// An informer is behind. If that owner is deleted before it is ever shown, nothing leads here.
		return outcome{did: key + " has its owners", again: time.Second, why: "an owner was not shown yet"}, nil
	case len(gone)+len(waiting) == 0:
		return outcome{did: key + " has no owner any more"}, nil
	}
	policy := metav1.DeletePropagationBackground
	if len(waiting) > 0 && len(m.dependentsOf(obj)) > 0 {
		policy = metav1.DeletePropagationForeground // its owner waits for all below it, too
	}
	return outcome{did: key + " is garbage", wrote: 1}, m.delete(ctx, latest, policy)
}

// allSolid reports whether the informers show every owner of an object, and none that waits for its end. Then the
// server need not be asked.
func (c *GarbageCollector) allSolid(obj metav1.Object) bool {
	return !slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		m := c.monitorOf(ref)
		if m == nil {
			return true
		}
		owner := m.cached(m.namespaceOf(obj), ref.Name)
		return owner == nil || owner.GetUID() != ref.UID || waitsForDependents(owner)
	})
}

func waitsForDependents(owner metav1.Object) bool {
	return owner.GetDeletionTimestamp() != nil &&
		slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// ownerAtServer reads an owner at the server; nil if there is none with that UID.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: (*GarbageCollector).isDangling
func (c *GarbageCollector) ownerAtServer(ctx context.Context, obj metav1.Object,
	ref metav1.OwnerReference) (metav1.Object, error) {
	m := c.monitorOf(ref)
	if m == nil {
		return nil, fmt.Errorf("%s names an owner of an unknown kind, %s of %s", keyOf(obj), ref.Kind, ref.APIVersion)
	}
	owner, err := m.get(ctx, m.namespaceOf(obj), ref.Name)
	if apierrors.IsNotFound(err) || err == nil && owner.GetUID() != ref.UID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return owner, nil
}

// release takes owners out of an object.
func (m *monitor) release(ctx context.Context, obj metav1.Object, owners ...types.UID) error {
	var entries []any
	for _, uid := range owners {
		entries = append(entries, map[string]any{"$patch": "delete", "uid": uid})
	}
	return m.patch(ctx, types.StrategicMergePatchType, obj, map[string]any{"ownerReferences": entries})
}

// removeFinalizer lets an object go. The version that was looked at is sent along: a dependent may have come since.
func (m *monitor) removeFinalizer(ctx context.Context, obj metav1.Object, finalizer string) error {
	left := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(each string) bool { return each == finalizer })
	return m.patch(ctx, types.MergePatchType, obj, map[string]any{"finalizers": left,
		"resourceVersion": obj.GetResourceVersion()})
}

// delete deletes an object in the version that was looked at: it may have got another owner since.
func (m *monitor) delete(ctx context.Context, obj *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	options := &metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{
		UID: new(obj.GetUID()), ResourceVersion: new(obj.GetResourceVersion())}}
	err := m.client.Delete().Namespace(obj.GetNamespace()).Resource(m.resource).Name(obj.GetName()).Body(options).
		Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

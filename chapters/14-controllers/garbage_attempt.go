package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// dependent is an object that names an owner.
type dependent struct {
	*monitor
	metav1.Object
	blocks bool // the owner's deletion in the foreground
}

// dependentsOf returns what the informers show that names an owner.
func (c *GarbageCollector) dependentsOf(owner types.UID) (found []dependent) {
	for _, m := range c.monitors {
		objs, _ := m.informer.GetIndexer().ByIndex(ownersIndex, string(owner)) // the index was added
		for _, obj := range objs {
			for _, ref := range metaOf(obj).GetOwnerReferences() {
				if ref.UID == owner {
					found = append(found, dependent{m, metaOf(obj), ptr.Deref(ref.BlockOwnerDeletion, false)})
				}
			}
		}
	}
	return found
}

// addDependents asks for a look at what an object owns, and reports whether some of it blocks the object's deletion.
func (c *GarbageCollector) addDependents(owner types.UID) (blocked bool) {
	for _, each := range c.dependentsOf(owner) {
		blocked = blocked || each.blocks
		c.queue.Add(each.key(each))
	}
	return blocked
}

// reconcile looks at one object, as an owner and as a dependent.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/graph_builder.go: (*GraphBuilder).processGraphChanges
func (c *GarbageCollector) reconcile(ctx context.Context, key string) (next outcome, err error) {
	kind, rest, _ := strings.Cut(key, " ")
	namespace, name, _ := strings.Cut(rest, "/")
	m := c.monitors[kind]
	obj := m.cached(namespace, name)
	switch {
	case obj == nil: // it is gone
	case obj.GetDeletionTimestamp() == nil:
		next.again, err = c.attemptToDelete(ctx, m, obj)
	case slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents):
		err = m.orphanDependents(ctx, obj)
	case waitsForDependents(obj):
		if !c.addDependents(obj.GetUID()) { // otherwise the end of the last that blocks leads here again
			err = m.removeFinalizer(ctx, obj, metav1.FinalizerDeleteDependents)
		}
	}
	return next, ignoreGone(err)
}

// orphanDependents takes the reference to an owner out of what names it, and lets the owner go.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: (*GarbageCollector).orphanDependents
func (m *monitor) orphanDependents(ctx context.Context, owner metav1.Object) error {
	for _, each := range m.gc.dependentsOf(owner.GetUID()) {
		err := releaseOwners(ctx, each.client, each.resource, each, owner.GetUID())
		if ignoreGone(err) != nil {
			return err
		}
	}
	return m.removeFinalizer(ctx, owner, metav1.FinalizerOrphanDependents)
}

// attemptToDelete deletes an object if the server says that none of its owners exists, or that
// those left wait for its deletion. It returns after how long it is to look again.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector: (*GarbageCollector).attemptToDeleteItem
func (c *GarbageCollector) attemptToDelete(ctx context.Context, m *monitor, obj metav1.Object) (time.Duration, error) {
	if c.allSolid(obj) {
		return 0, nil
	}
	latest, err := m.get(ctx, obj.GetNamespace(), obj.GetName(), obj.GetUID())
	if latest == nil || err != nil {
		return 0, err // if it is another one by now, the informer will tell
	}
	var solid, waiting bool
	var dangling []types.UID // of owners that are gone, or wait for this
	for _, ref := range latest.GetOwnerReferences() {
		owner, err := c.ownerAtServer(ctx, latest, ref)
		if err != nil {
			return 0, err
		}
		if owner != nil && !waitsForDependents(owner) {
			solid = true
			continue
		}
		dangling, waiting = append(dangling, ref.UID), waiting || owner != nil
	}
	switch {
	case solid && len(dangling) > 0:
		return 0, releaseOwners(ctx, m.client, m.resource, latest, dangling...)
	case solid: // An informer is behind. If that owner is deleted before it is ever shown, nothing leads here.
		return time.Second, nil
	case len(dangling) == 0: // it has no owner any more
		return 0, nil
	}
	policy := metav1.DeletePropagationBackground
	if waiting && len(c.dependentsOf(obj.GetUID())) > 0 {
		policy = metav1.DeletePropagationForeground // its owner waits for all below it, too
	}
	return 0, m.delete(ctx, latest, policy)
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
	return m.get(ctx, m.namespaceOf(obj), ref.Name, ref.UID)
}

// removeFinalizer lets an object go. The version that was looked at is sent along: a dependent may have come since.
func (m *monitor) removeFinalizer(ctx context.Context, obj metav1.Object, finalizer string) error {
	left := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(each string) bool { return each == finalizer })
	return patchMetadata(ctx, m.client, m.resource, types.MergePatchType, obj, map[string]any{"finalizers": left,
		"resourceVersion": obj.GetResourceVersion()})
}

// delete deletes an object in the version that was looked at: it may have got another owner since.
func (m *monitor) delete(ctx context.Context, obj metav1.Object, policy metav1.DeletionPropagation) error {
	options := &metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{
		UID: new(obj.GetUID()), ResourceVersion: new(obj.GetResourceVersion())}}
	return m.client.Delete().Namespace(obj.GetNamespace()).Resource(m.resource).Name(obj.GetName()).Body(options).
		Do(ctx).Error()
}

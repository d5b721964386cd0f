package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/routine"
)

// GarbageCollectorConfig describes a [GarbageCollector]. Client and Clock are required.
type GarbageCollectorConfig struct {
	Client       *listwatch.RESTClient
	Shared       map[string]*informer.SharedIndexInformer // run by others, by kind: "apps/v1/Deployment"
	Clock        clock.WithTicker
	UseWatchList bool
}

// GarbageCollector deletes objects whose owners are all gone. Its informers, one for each kind that discovery says can
// be listed, watched and deleted, may each be behind, and say only where to look: before each deletion it asks the
// server for every owner, and compares the UIDs.
//
// An object that is deleted in the background vanishes, and what it owned is looked at. In the foreground it stays,
// marked, until what it owned is gone. Or it stays until what it owned is an orphan.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: GarbageCollector
// Differs: no graph; an index of each informer's store finds dependents by the UID of their owner. Asks discovery
// once. Deletes an object in the version that it has looked at, where upstream reads it again. Has one worker, does not
// remember owners that are gone, and does not look for circles. An owner waits for all that it owns, upstream in the
// foreground for what has blockOwnerDeletion; and it looks every second whether some is left. A dependent that is being
// deleted keeps its owner waiting until it is gone.
type GarbageCollector struct {
	config   GarbageCollectorConfig
	queue    *RateLimitingQueue
	monitors map[string]*monitor // by kind; set by Run before the worker and the informers run
}

// monitor is one kind: how the server serves it, and what the informer has shown of it.
type monitor struct {
	served
	informer *informer.SharedIndexInformer
}

// ownersIndex finds objects by the UID of each of their owners.
const ownersIndex = "owners"

var byOwner = indexer.Indexers{ownersIndex: func(obj any) (owners []string, err error) {
	for _, ref := range obj.(metav1.Object).GetOwnerReferences() {
		owners = append(owners, string(ref.UID))
	}
	return owners, nil
}}

// NewGarbageCollector returns a collector that does nothing until [GarbageCollector.Run].
func NewGarbageCollector(config GarbageCollectorConfig) *GarbageCollector {
	return &GarbageCollector{config: config, queue: NewRateLimitingQueue(config.Clock, nil)}
}

// Run collects until ctx is done and all its goroutines have ended.
func (c *GarbageCollector) Run(ctx context.Context) {
	for c.discover(ctx) != nil {
		if routine.Sleep(ctx, c.config.Clock, time.Second) != nil {
			return
		}
	}
	var g routine.Group
	defer g.Wait()
	var synced []<-chan struct{}
	for _, m := range c.monitors { // a handler may look at all of them as soon as one runs
		synced = append(synced, follow(m.informer, func(old, obj metav1.Object) { c.changed(m, old, obj) }))
		if c.config.Shared[m.kind] == nil {
			g.Go(ctx, "garbagecollector.informer", m.informer.Run)
		}
	}
	runWorker(ctx, c.queue, c, synced...)
}

// discover makes a monitor of each kind whose objects can be listed, watched and deleted, but for events. An informer
// that is not shared keeps of each object the metadata.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: GetDeletableResources
func (c *GarbageCollector) discover(ctx context.Context) error {
	kinds, err := discover(ctx, c.config.Client)
	c.monitors = map[string]*monitor{}
	for _, each := range kinds {
		if !each.verbs.HasAll("delete", "list", "watch") || each.name == "events" {
			continue
		}
		m := &monitor{each, c.config.Shared[each.kind]}
		if m.informer == nil {
			m.informer = informer.NewSharedIndexInformer(informer.Config{Name: m.name, Clock: c.config.Clock,
				ListerWatcher: m.client.Untyped().ListWatch(m.name, metav1.NamespaceAll, nil),
				ExampleObject: &unstructured.Unstructured{}, UseWatchList: c.config.UseWatchList,
				Transform: func(o any) (any, error) { return meta.AsPartialObjectMetadata(o.(metav1.Object)), nil }})
		}
		_ = m.informer.GetIndexer().AddIndexers(byOwner) // the error is that there is such an index
		c.monitors[m.kind] = m
	}
	return err
}

// changed is told of every change of an object: it is to be looked at, and what it owns if it has come or is gone.
func (c *GarbageCollector) changed(m *monitor, old, obj metav1.Object) {
	if obj != nil {
		c.queue.Add(m.kind + " " + keyOf(obj))
	}
	for _, each := range []metav1.Object{old, obj} {
		if each != nil && (old == nil || obj == nil || old.GetUID() != obj.GetUID()) {
			c.dependentsOf(each.GetUID())
		}
	}
}

// cached returns what the informer has shown of an object, nil if nothing.
func (m *monitor) cached(key string) metav1.Object {
	obj, _, _ := m.informer.GetIndexer().GetByKey(strings.TrimPrefix(key, "/")) // never an error
	shown, _ := obj.(metav1.Object)
	return shown
}

// dependentsOf asks for a look at all that the informers show to name an owner, and returns how many these are.
func (c *GarbageCollector) dependentsOf(owner types.UID) (n int) {
	for _, m := range c.monitors {
		objs, _ := m.informer.GetIndexer().ByIndex(ownersIndex, string(owner)) // the index was added
		for _, obj := range objs {
			c.queue.Add(m.kind + " " + keyOf(obj.(metav1.Object)))
		}
		n += len(objs)
	}
	return n
}

// reconcile looks at one object, as an owner and as a dependent.
func (c *GarbageCollector) reconcile(ctx context.Context, key string) (next outcome, err error) {
	kind, rest, _ := strings.Cut(key, " ")
	m := c.monitors[kind]
	obj := m.cached(rest)
	switch {
	case obj == nil: // it is gone
	case obj.GetDeletionTimestamp() == nil:
		err = c.attemptToDelete(ctx, m, obj)
	case !waits(obj, metav1.FinalizerDeleteDependents) && !waits(obj, metav1.FinalizerOrphanDependents):
	case c.dependentsOf(obj.GetUID()) > 0:
		next.again = time.Second
	default:
		err = m.removeFinalizers(ctx, obj, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents)
	}
	return next, ignoreGone(err)
}

// attemptToDelete deletes an object if the server says that none of its owners exists, or that those left wait for its
// deletion. What is kept, by another owner or as an orphan, loses only the references to these.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector: (*GarbageCollector).attemptToDeleteItem
func (c *GarbageCollector) attemptToDelete(ctx context.Context, m *monitor, obj metav1.Object) error {
	var dangling []types.UID // owners that do not want it any more
	kept, waiting := false, false
	for _, ref := range obj.GetOwnerReferences() {
		owner, err := c.owner(ctx, obj, ref)
		switch {
		case err != nil:
			return err
		case owner == nil:
		case waits(owner, metav1.FinalizerDeleteDependents):
			waiting = true
		case waits(owner, metav1.FinalizerOrphanDependents):
			kept = true
		default:
			kept = true
			continue
		}
		dangling = append(dangling, ref.UID)
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case len(dangling) == 0:
		return nil
	case kept:
		return m.release(ctx, obj, dangling...)
	case waiting && c.dependentsOf(obj.GetUID()) > 0: // its owner waits for all below it, too
		policy = metav1.DeletePropagationForeground
	}
	return m.delete(ctx, obj, policy)
}

// owner returns an owner of an object, nil if it is gone. Unless the informers show that it lives, the server says so.
// One that lives and is not shown yet is an error: if it went before it is shown, nothing would lead to the object.
func (c *GarbageCollector) owner(ctx context.Context, obj metav1.Object, ref metav1.OwnerReference) (metav1.Object,
	error) {
	m, namespace := c.monitors[ref.APIVersion+"/"+ref.Kind], ""
	if m == nil {
		return nil, fmt.Errorf("%s names an owner of an unknown kind, %s of %s", keyOf(obj), ref.Kind, ref.APIVersion)
	}
	if m.namespaced {
		namespace = obj.GetNamespace()
	}
	shown := m.cached(namespace + "/" + ref.Name)
	if shown != nil && shown.GetUID() == ref.UID && !waits(shown, metav1.FinalizerDeleteDependents) {
		return shown, nil
	}
	owner, err := m.get(ctx, namespace, ref.Name, ref.UID)
	if err == nil && owner != nil && !waits(owner, metav1.FinalizerDeleteDependents) {
		err = fmt.Errorf("%s of %s is not shown yet", ref.Name, keyOf(obj))
	}
	return owner, err
}

// waits reports whether an owner is kept by a finalizer until it has no dependents any more.
func waits(owner metav1.Object, finalizer string) bool {
	return owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), finalizer)
}

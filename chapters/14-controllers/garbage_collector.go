package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/routine"
)

// GarbageCollectorConfig describes a [GarbageCollector]. Client and Clock are required.
type GarbageCollectorConfig struct {
	Client *listwatch.RESTClient
	// Shared are informers that others run, by the path of their resource: "/api/v1/pods".
	Shared       map[string]*informer.SharedIndexInformer
	Clock        clock.WithTicker
	UseWatchList bool
}

// GarbageCollector deletes objects whose owners are all gone. Its informers, one for each kind that discovery says can
// be listed, watched and deleted, may each be behind, and say only where to look: before each deletion it reads the
// object and its owners at the server, and compares the UIDs.
//
// An object that is deleted in the background vanishes, and what it owned is looked at. In the foreground it stays,
// marked, until what blocks its deletion is gone. Or it stays until what it owned is an orphan.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: GarbageCollector
// Differs: no graph; an index of each informer's store finds dependents by kind and name of their owner. Asks discovery
// once, upstream every 30 s. Has one worker, does not remember owners that are gone, and does not look for circles.
type GarbageCollector struct {
	// Set by NewGarbageCollector, never changed.
	config GarbageCollectorConfig
	queue  *RateLimitingQueue
	worker *worker

	monitors map[string]*monitor // by path; set by Run before the worker and the informers run
}

// monitor is one kind: how the server serves it, and what the informer has shown of it. It is a handler of that.
type monitor struct {
	gc         *GarbageCollector
	client     *listwatch.RESTClient
	path       string // "/apis/apps/v1/deployments"
	resource   string
	kind       metav1.TypeMeta
	namespaced bool
	informer   *informer.SharedIndexInformer
}

// ownersIndex finds objects by the kind and name of each of their owners.
const ownersIndex = "owners"

func ownerKey(kind, name string) string { return kind + "/" + name }

var byOwner = indexer.Indexers{ownersIndex: func(obj any) (owners []string, err error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	for _, ref := range accessor.GetOwnerReferences() {
		owners = append(owners, ownerKey(ref.Kind, ref.Name))
	}
	return owners, nil
}}

// NewGarbageCollector returns a collector that does nothing until [GarbageCollector.Run].
func NewGarbageCollector(config GarbageCollectorConfig) *GarbageCollector {
	c := &GarbageCollector{config: config, queue: NewRateLimitingQueue(config.Clock, nil),
		monitors: map[string]*monitor{}}
	c.worker = &worker{queue: c.queue, reconciler: c}
	return c
}

// Run collects until ctx is done and all its goroutines have ended.
func (c *GarbageCollector) Run(ctx context.Context) {
	var g routine.Group
	defer g.Wait()
	g.Go(ctx, "garbagecollector.waitingLoop", c.queue.Run)
	kinds, err := c.discover(ctx)
	for ; err != nil; kinds, err = c.discover(ctx) {
		if routine.Sleep(ctx, c.config.Clock, time.Second) != nil {
			return
		}
	}
	for _, m := range kinds {
		m.informer = c.informerOf(m)
		c.monitors[m.path] = m
	}
	var synced []<-chan struct{}
	for _, m := range kinds { // from the first on, a handler may look at all of them
		registration, err := m.informer.AddEventHandlerWithOptions(m, informer.HandlerOptions{Quiet: true})
		if err != nil {
			return // the informer has stopped: so does the program
		}
		synced = append(synced, registration.HasSyncedChecker())
		if c.config.Shared[m.path] == nil {
			g.Go(ctx, "garbagecollector.informer", m.informer.Run)
		}
	}
	if informer.WaitFor(ctx, synced...) {
		g.Go(ctx, "garbagecollector.worker", c.worker.run)
	}
}

// informerOf returns the informer of a kind. One that is not shared keeps of each object the metadata.
func (c *GarbageCollector) informerOf(m *monitor) *informer.SharedIndexInformer {
	one := c.config.Shared[m.path]
	if one == nil {
		one = informer.NewSharedIndexInformer(informer.Config{Name: m.resource, Clock: c.config.Clock,
			ListerWatcher: m.client.ListWatch(m.resource, metav1.NamespaceAll, nil),
			ExampleObject: &unstructured.Unstructured{}, UseWatchList: c.config.UseWatchList,
			Transform: metadataOnly})
	}
	_ = one.GetIndexer().AddIndexers(byOwner) // the error is that there is such an index
	return one
}

// metadataOnly is a transform function.
func metadataOnly(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return meta.AsPartialObjectMetadata(accessor), nil
}

// discover returns all kinds whose objects can be listed, watched and deleted, but for events.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: GetDeletableResources
func (c *GarbageCollector) discover(ctx context.Context) (kinds []*monitor, err error) {
	err = discover(ctx, c.config.Client, func(client *listwatch.RESTClient, path string,
		kind metav1.APIResource) error {
		for _, verb := range []string{"delete", "list", "watch"} {
			if !slices.Contains(kind.Verbs, verb) || kind.Name == "events" {
				return nil
			}
		}
		apiVersion := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
		kinds = append(kinds, &monitor{gc: c, client: client.Untyped(), path: path + "/" + kind.Name,
			resource: kind.Name, namespaced: kind.Namespaced,
			kind: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind.Kind}})
		return nil
	})
	return kinds, err
}

// OnAdd is called by the informer for an object that has come into view.
func (m *monitor) OnAdd(obj any, _ bool) { m.see(obj) }

// OnUpdate is called for one that has changed. It may be another one of that name.
func (m *monitor) OnUpdate(old, obj any) {
	before, _ := meta.Accessor(old) // what is stored has one
	now, _ := meta.Accessor(obj)
	if before.GetUID() != now.GetUID() {
		m.OnDelete(old)
	}
	m.see(obj)
}

// OnDelete is called for one that is gone. What it owned is to be looked at, whether or not there
// is another one of that name by then.
func (m *monitor) OnDelete(obj any) {
	if tombstone, ok := obj.(deltafifo.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	m.see(obj)
	if accessor, err := meta.Accessor(obj); err == nil {
		m.addDependents(accessor)
	}
}

// see asks for a look at an object, and at its owners: one of them may have waited for this.
func (m *monitor) see(obj any) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	m.gc.queue.Add(m.key(accessor))
	for _, ref := range accessor.GetOwnerReferences() {
		if owner := m.gc.monitorOf(ref); owner != nil {
			m.gc.queue.Add(owner.path + " " + owner.namespaceOf(accessor) + "/" + ref.Name)
		}
	}
}

// key is the path of the kind, and namespace and name.
func (m *monitor) key(obj metav1.Object) string { return m.path + " " + keyOf(obj) }

// namespaceOf returns the namespace in which an owner of that kind is looked for.
func (m *monitor) namespaceOf(dependent metav1.Object) string {
	if m.namespaced {
		return dependent.GetNamespace()
	}
	return ""
}

// monitorOf returns the monitor of an owner's kind, nil if there is none.
func (c *GarbageCollector) monitorOf(ref metav1.OwnerReference) *monitor {
	for _, m := range c.monitors {
		if m.kind.APIVersion == ref.APIVersion && m.kind.Kind == ref.Kind {
			return m
		}
	}
	return nil
}

// cached returns what the informer has shown of an object, nil if nothing.
func (m *monitor) cached(namespace, name string) metav1.Object {
	obj, exists, _ := m.informer.GetIndexer().GetByKey(strings.TrimPrefix(namespace+"/"+name, "/")) // never an error
	if !exists {
		return nil
	}
	accessor, _ := meta.Accessor(obj) // what is stored has one
	return accessor
}

// get reads an object at the server.
func (m *monitor) get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	return obj, m.client.Get().Namespace(namespace).Resource(m.resource).Name(name).Do(ctx).Into(obj)
}

// patch changes the metadata of obj, if it is still the one with that UID.
func (m *monitor) patch(ctx context.Context, typ types.PatchType, obj metav1.Object, metadata map[string]any) error {
	metadata["uid"] = obj.GetUID()
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("patch %s: %w", m.key(obj), err)
	}
	err = m.client.Patch(typ).Namespace(obj.GetNamespace()).Resource(m.resource).Name(obj.GetName()).Body(body).
		Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

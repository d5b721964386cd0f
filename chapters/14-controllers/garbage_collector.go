package controllers

import (
	"context"
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
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/routine"
)

// GarbageCollectorConfig describes a [GarbageCollector]. Client and Clock are required.
type GarbageCollectorConfig struct {
	Client *listwatch.RESTClient
	// Shared are informers that others run, by their kind: "apps/v1/Deployment".
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
// Differs: no graph; an index of each informer's store finds dependents by the UID of their owner. Asks discovery once,
// upstream every 30 s. Has one worker, does not remember owners that are gone, and does not look for circles.
type GarbageCollector struct {
	// Set by NewGarbageCollector, never changed.
	config GarbageCollectorConfig
	queue  *RateLimitingQueue

	monitors map[string]*monitor // by kind; set by Run before the worker and the informers run
}

// monitor is one kind: how the server serves it, and what the informer has shown of it.
type monitor struct {
	gc         *GarbageCollector
	client     *listwatch.RESTClient
	kind       string // "apps/v1/Deployment"
	resource   string
	namespaced bool
	informer   *informer.SharedIndexInformer
}

// ownersIndex finds objects by the UID of each of their owners.
const ownersIndex = "owners"

var byOwner = indexer.Indexers{ownersIndex: func(obj any) (owners []string, err error) {
	for _, ref := range metaOf(obj).GetOwnerReferences() {
		owners = append(owners, string(ref.UID))
	}
	return owners, nil
}}

// metaOf returns the metadata of an object that an informer has shown: it has some.
func metaOf(obj any) metav1.Object {
	accessor, _ := meta.Accessor(obj)
	return accessor
}

// NewGarbageCollector returns a collector that does nothing until [GarbageCollector.Run].
func NewGarbageCollector(config GarbageCollectorConfig) *GarbageCollector {
	return &GarbageCollector{config: config, queue: NewRateLimitingQueue(config.Clock, nil),
		monitors: map[string]*monitor{}}
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
		if follow(&synced, m.informer, m.changed) != nil {
			return // the informer has stopped: so does the program
		}
		if c.config.Shared[m.kind] == nil {
			g.Go(ctx, "garbagecollector.informer", m.informer.Run)
		}
	}
	runWorker(ctx, c.queue, c, synced)
}

// discover makes a monitor of each kind whose objects can be listed, watched and deleted, but for events.
//
// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: GetDeletableResources
func (c *GarbageCollector) discover(ctx context.Context) error {
	return discover(ctx, c.config.Client, func(client *listwatch.RESTClient, path string,
		kind metav1.APIResource) error {
		for _, verb := range []string{"delete", "list", "watch"} {
			if !slices.Contains(kind.Verbs, verb) || kind.Name == "events" {
				return nil
			}
		}
		apiVersion := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
		m := &monitor{gc: c, client: client.Untyped(), kind: apiVersion + "/" + kind.Kind, resource: kind.Name,
			namespaced: kind.Namespaced}
		m.informer = c.informerOf(m)
		c.monitors[m.kind] = m
		return nil
	})
}

// informerOf returns the informer of a kind. One that is not shared keeps of each object the metadata.
func (c *GarbageCollector) informerOf(m *monitor) *informer.SharedIndexInformer {
	one := c.config.Shared[m.kind]
	if one == nil {
		one = informer.NewSharedIndexInformer(informer.Config{Name: m.resource, Clock: c.config.Clock,
			ListerWatcher: m.client.ListWatch(m.resource, metav1.NamespaceAll, nil),
			ExampleObject: &unstructured.Unstructured{}, UseWatchList: c.config.UseWatchList,
			Transform: func(obj any) (any, error) { return meta.AsPartialObjectMetadata(metaOf(obj)), nil }})
	}
	_ = one.GetIndexer().AddIndexers(byOwner) // the error is that there is such an index
	return one
}

// changed is told of every change of an object. What one that is gone owned is to be looked at,
// whether or not there is another one of that name by now.
func (m *monitor) changed(old, obj metav1.Object) {
	if old != nil && (obj == nil || obj.GetUID() != old.GetUID()) {
		m.see(old)
		m.gc.addDependents(old.GetUID())
	}
	if obj != nil {
		m.see(obj)
	}
}

// see asks for a look at an object, and at its owners: one of them may have waited for this.
func (m *monitor) see(obj metav1.Object) {
	m.gc.queue.Add(m.key(obj))
	for _, ref := range obj.GetOwnerReferences() {
		if owner := m.gc.monitorOf(ref); owner != nil {
			m.gc.queue.Add(owner.kind + " " + owner.namespaceOf(obj) + "/" + ref.Name)
		}
	}
}

// key is the kind, and namespace and name.
func (m *monitor) key(obj metav1.Object) string { return m.kind + " " + keyOf(obj) }

// namespaceOf returns the namespace in which an owner of that kind is looked for.
func (m *monitor) namespaceOf(dependent metav1.Object) string {
	if m.namespaced {
		return dependent.GetNamespace()
	}
	return ""
}

// monitorOf returns the monitor of an owner's kind, nil if there is none.
func (c *GarbageCollector) monitorOf(ref metav1.OwnerReference) *monitor {
	return c.monitors[ref.APIVersion+"/"+ref.Kind]
}

// cached returns what the informer has shown of an object, nil if nothing.
func (m *monitor) cached(namespace, name string) metav1.Object {
	obj, exists, _ := m.informer.GetIndexer().GetByKey(strings.TrimPrefix(namespace+"/"+name, "/")) // never an error
	if !exists {
		return nil
	}
	return metaOf(obj)
}

// get reads an object at the server; nil if there is none with that UID.
func (m *monitor) get(ctx context.Context, namespace, name string, uid types.UID) (metav1.Object, error) {
	obj := &unstructured.Unstructured{}
	err := m.client.Get().Namespace(namespace).Resource(m.resource).Name(name).Do(ctx).Into(obj)
	if apierrors.IsNotFound(err) || err == nil && obj.GetUID() != uid {
		return nil, nil
	}
	return obj, err
}

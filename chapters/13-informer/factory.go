package informer

import (
	"context"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	indexer "listwatch/chapters/11-indexer"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// FactoryConfig describes a [SharedInformerFactory]. Client and Clock are required.
//
// Upstream: k8s.io/client-go/informers/factory.go: NewSharedInformerFactoryWithOptions
type FactoryConfig struct {
	Client Client
	Clock  clock.WithTicker
	Probe  *probe.Probe // each informer's probe is this one's Resource of its resource

	// TweakListOptions changes the options of every list and every watch, for instance to set a selector. There is one
	// informer per type: who needs two selectors needs two factories.
	TweakListOptions func(options *metav1.ListOptions)
	Transform        reflector.TransformFunc
	FIFO             string
	UseWatchList     bool
}

// Client is where informers get their objects from.
type Client interface {
	// ListWatch returns a way to list and watch one resource, in one namespace or, with "", in all. tweak may be nil;
	// otherwise it is applied to the options of every request.
	ListWatch(resource, namespace string, tweak func(options *metav1.ListOptions)) reflector.ListerWatcher
}

// SharedInformerFactory makes informers, one per type, and starts and ends them together.
//
// Upstream: k8s.io/client-go/informers/factory.go: sharedInformerFactory
// Differs: has no WaitForCacheSync, which waits for all informers that were started: [WaitFor] waits for those that it
// is given.
type SharedInformerFactory struct {
	// Set by NewSharedInformerFactory, never changed.
	config FactoryConfig

	goroutines routine.Group // Run of every informer started

	mu           sync.Mutex // guards the fields below; no other lock is taken under it
	informers    map[informerKey]*SharedIndexInformer
	shuttingDown bool
}

// NewSharedInformerFactory returns a factory without informers.
//
// Upstream: k8s.io/client-go/informers/factory.go: NewSharedInformerFactory
func NewSharedInformerFactory(cfg FactoryConfig) *SharedInformerFactory {
	return &SharedInformerFactory{config: cfg, informers: map[informerKey]*SharedIndexInformer{}}
}

// informerKey is what there is one informer of. The type alone would not do: objects of one type
// may belong to several resources.
type informerKey struct {
	informerType reflect.Type
	resource     string
}

// InformerFor returns the informer of a resource whose objects have example's type, and makes
// it, with a namespace index, if there is none. It runs from the next Start on.
//
// Upstream: k8s.io/client-go/informers/factory.go: (*sharedInformerFactory).InformerFor
// Upstream: k8s.io/client-go/informers/core/v1/pod.go: NewFilteredPodInformer
// Differs: upstream is given a function that makes the informer, generated for each type, and
// looks for one by the type alone; and its factory may be one of a single namespace.
func (f *SharedInformerFactory) InformerFor(
	example runtime.Object, resource string,
) *SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := informerKey{reflect.TypeOf(example), resource}
	if informer, exists := f.informers[key]; exists {
		return informer
	}
	lw := f.config.Client.ListWatch(resource, metav1.NamespaceAll, f.config.TweakListOptions)
	informer := NewSharedIndexInformer(Config{
		Name:          resource,
		ListerWatcher: lw,
		ExampleObject: example,
		Indexers:      indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
		Clock:         f.config.Clock,
		Probe:         f.config.Probe.Resource(resource),
		FIFO:          f.config.FIFO,
		UseWatchList:  f.config.UseWatchList,
		Transform:     f.config.Transform,
	})
	f.informers[key] = informer
	return informer
}

// Start starts the informers that have been asked for and are not started yet, also if it is
// called again; after Shutdown it does nothing. It does not wait. They run until ctx is done.
//
// Upstream: k8s.io/client-go/informers/factory.go: (*sharedInformerFactory).StartWithContext
// Differs: keeps no list of those that are started: [SharedIndexInformer.Run] does nothing the
// second time.
func (f *SharedInformerFactory) Start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shuttingDown {
		return
	}
	for _, informer := range f.informers {
		f.goroutines.Go(ctx, "informer.Run", informer.Run)
	}
}

// Shutdown starts nothing more, and waits until every informer has ended. The caller cancels their contexts.
//
// Upstream: k8s.io/client-go/informers/factory.go: (*sharedInformerFactory).Shutdown
func (f *SharedInformerFactory) Shutdown() {
	f.mu.Lock()
	f.shuttingDown = true
	f.mu.Unlock()
	f.goroutines.Wait()
}

package storm

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informer is one of the real client-go, with a handler that tells a view.
type informer struct {
	shared cache.SharedIndexInformer
	view   *view
	nLists atomic.Int64
}

// newInformer returns an informer that speaks protobuf with types, or JSON without, and gets its state as a stream or as
// a list. Its handler takes its time for each call.
func newInformer(who, base string, typed, stream bool, slow time.Duration) (*informer, error) {
	i := &informer{view: newView(who, nil, false)}
	config := &rest.Config{Host: base, QPS: -1}
	lw, example, client, err := untyped(config)
	if typed {
		config.ContentType = runtime.ContentTypeProtobuf
		lw, example, client, err = protobuf(config)
	}
	if err != nil {
		return nil, err
	}
	source := i.noting(lw)
	if stream {
		i.shared = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(source, client), example, 0, cache.Indexers{})
	} else {
		i.shared = cache.NewSharedIndexInformer(listOnly{source}, example, 0, cache.Indexers{})
	}
	_, err = i.shared.AddEventHandler(handler{i.view, slow})
	return i, err
}

// listOnly is a source that cannot send its state as a stream.
type listOnly struct{ *cache.ListWatch }

func (listOnly) IsWatchListSemanticsUnSupported() bool { return true }

func protobuf(config *rest.Config) (*cache.ListWatch, runtime.Object, any, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: maps.Watch,
	}, &corev1.ConfigMap{}, client, nil
}

func untyped(config *rest.Config) (*cache.ListWatch, runtime.Object, any, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: maps.Watch,
	}, &unstructured.Unstructured{}, client, nil
}

// noting tells the view of every list that goes by: those that are asked for, and those that a stream begins with.
func (i *informer) noting(under *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := under.ListWithContextFunc(ctx, options)
			if err == nil {
				i.note(list)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			under, err := under.WatchFuncWithContext(ctx, options)
			if err != nil || options.SendInitialEvents == nil {
				return under, err
			}
			w := &notedWatch{Interface: under, out: make(chan watch.Event), stopped: make(chan struct{}), note: i.note}
			go w.run()
			return w, nil
		},
	}
}

func (i *informer) note(list runtime.Object) {
	i.nLists.Add(1)
	if accessor, err := meta.CommonAccessor(list); err == nil {
		i.view.listed(parse(accessor.GetResourceVersion()))
	}
}

// notedWatch hands events on, and notes the bookmark with which the first state ends.
type notedWatch struct {
	watch.Interface
	out     chan watch.Event // sent and closed by run; unbuffered
	stopped chan struct{}    // closed by Stop
	note    func(runtime.Object)
	once    atomic.Bool
}

func (w *notedWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *notedWatch) Stop() {
	w.Interface.Stop()
	if w.once.CompareAndSwap(false, true) {
		close(w.stopped)
	}
}

// run ends when the watch below it does, or with Stop.
func (w *notedWatch) run() {
	defer close(w.out)
	for event := range w.Interface.ResultChan() {
		if o, err := meta.Accessor(event.Object); err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			w.note(event.Object)
		}
		select {
		case w.out <- event:
		case <-w.stopped:
			return
		}
	}
}

// handler tells a view what an informer tells it.
type handler struct {
	view *view
	slow time.Duration
}

func (h handler) OnAdd(obj any, _ bool) { h.told("ADDED", obj) }

func (h handler) OnUpdate(_, obj any) { h.told("MODIFIED", obj) }

func (h handler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		h.view.gone(objectOf(tombstone.Obj).name)
		return
	}
	h.told("DELETED", obj)
}

func (h handler) told(kind string, obj any) {
	h.view.event(kind, objectOf(obj))
	time.Sleep(h.slow) // it is a slow handler
}

// objectOf reads what a store holds.
func objectOf(obj any) object {
	var n string
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		n = o.Data["n"]
	case *unstructured.Unstructured:
		n, _, _ = unstructured.NestedString(o.Object, "data", "n")
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return object{}
	}
	counter, _ := strconv.Atoi(n) // 0 is never right, and found
	return object{accessor.GetName(), counter, parse(accessor.GetResourceVersion())}
}

// stored returns the counters in the store of the informer.
func (i *informer) stored() map[string]int {
	counters := map[string]int{}
	for _, obj := range i.shared.GetStore().List() {
		o := objectOf(obj)
		counters[o.name] = o.n
	}
	return counters
}

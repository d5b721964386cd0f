package storm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informer is one of the real client-go, with a handler that takes its time. A handler may miss versions, when a list
// lies between them; it must never be told an older one, and nothing of an object after its deletion.
type informer struct {
	// Set by newInformer, never changed.
	who    string
	shared cache.SharedIndexInformer
	slow   time.Duration

	mu     sync.Mutex // guards the fields below
	known  map[string]told
	nCalls int
	faults
}

func (i *informer) name() string            { return i.who }
func (i *informer) run(ctx context.Context) { i.shared.RunWithContext(ctx) }
func (i *informer) String() string          { return fmt.Sprintf("%d calls of the handler", i.nCalls) }

// newInformer returns an informer that speaks protobuf with types, or JSON without.
func newInformer(who, base string, typed bool, slow time.Duration) *informer {
	i := &informer{who: who, slow: slow, known: map[string]told{}}
	config := &rest.Config{Host: base, QPS: -1}
	if typed {
		config.ContentType = runtime.ContentTypeProtobuf
		client := kubernetes.NewForConfigOrDie(config)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		i.shared = factory.Core().V1().ConfigMaps().Informer()
	} else {
		maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0,
			namespace, nil)
		i.shared = factory.ForResource(maps).Informer()
	}
	if _, err := i.shared.AddEventHandler(i); err != nil {
		panic(err) // only an informer that has ended refuses a handler
	}
	return i
}

// OnAdd is called by the informer.
func (i *informer) OnAdd(obj any, _ bool) { i.told(objectOf(obj), here) }

// OnUpdate is called by the informer.
func (i *informer) OnUpdate(_, obj any) { i.told(objectOf(obj), here) }

// OnDelete is called by the informer.
func (i *informer) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		i.told(objectOf(tombstone.Obj), lost)
		return
	}
	i.told(objectOf(obj), left)
}

func (i *informer) told(o object, place place) {
	i.note(o, place)
	time.Sleep(i.slow) // it is a slow handler
}

func (i *informer) note(o object, place place) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.nCalls++
	last := i.known[o.name]
	newer := o.n > last.n && o.rv > last.rv
	again := o.n == last.n && o.rv == last.rv // a list holds it as it was
	switch {
	case last.place == left || last.place == lost:
		i.add("%s: %+v after the object had gone: %+v", i.who, o, last)
	case place == here && !newer && !again, place == left && (o.n < last.n || o.rv <= last.rv), place == lost &&
		o.n != last.n:
		i.add("%s: %+v after %+v", i.who, o, last)
	}
	i.known[o.name] = told{o.n, o.rv, place}
}

// holds returns what the handler believes to be there: counters by name.
func (i *informer) holds() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return counters(i.known)
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

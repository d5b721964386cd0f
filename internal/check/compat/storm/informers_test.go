package storm

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informer is one of the real client-go. It has to end with what is stored. What it is told on the way is what raw
// watches are told, and they are judged.
type informer struct {
	faults // none
	who    string
	shared cache.SharedIndexInformer
}

func (i *informer) name() string            { return i.who }
func (i *informer) run(ctx context.Context) { i.shared.RunWithContext(ctx) }
func (i *informer) String() string {
	return fmt.Sprintf("%d objects", len(i.shared.GetStore().ListKeys()))
}

// newInformer returns an informer that speaks protobuf with types, or JSON without.
func newInformer(who, base string, typed bool) *informer {
	config := &rest.Config{Host: base, QPS: -1}
	if typed {
		config.ContentType = runtime.ContentTypeProtobuf
		client := kubernetes.NewForConfigOrDie(config)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		return &informer{who: who, shared: factory.Core().V1().ConfigMaps().Informer()}
	}
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0, namespace,
		nil)
	return &informer{who: who, shared: factory.ForResource(maps).Informer()}
}

// differs says how the store differs from a list, or "".
func (i *informer) differs(list map[string]int) string {
	stored := map[string]int{}
	for _, obj := range i.shared.GetStore().List() {
		o := objectOf(obj)
		stored[o.name] = o.n
	}
	return difference(i.who, stored, list)
}

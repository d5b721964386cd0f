package informer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
)

// TypedInformer is an informer of the factory, and the way to use it without type assertions. Where upstream has
// generated code for each resource, this is one generic type: the generated code differs in nothing but names.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: TypedSharedIndexInformer
// Upstream: k8s.io/client-go/informers/core/v1/pod.go: PodInformer
type TypedInformer[T processor.Object] struct {
	informer *SharedIndexInformer
}

// Informer returns the shared informer itself.
func (t TypedInformer[T]) Informer() *SharedIndexInformer { return t.informer }

// Lister returns a lister over the informer's store.
func (t TypedInformer[T]) Lister() indexer.Lister[T] {
	return indexer.NewLister[T](t.informer.GetIndexer(), schema.GroupResource{Resource: t.informer.config.Name})
}

// AddTypedEventHandler is [SharedIndexInformer.AddEventHandlerWithOptions] for a typed handler.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: TypedSharedIndexInformer
func (t TypedInformer[T]) AddTypedEventHandler(handler processor.TypedResourceEventHandler[T],
	opts HandlerOptions) (processor.Registration, error) {
	return t.informer.AddEventHandlerWithOptions(processor.Untyped(handler), opts)
}

// Pods returns the informer of pods. Asking for it is what makes the factory start it.
func (f *SharedInformerFactory) Pods() TypedInformer[*corev1.Pod] {
	return TypedInformer[*corev1.Pod]{f.InformerFor(&corev1.Pod{}, "pods")}
}

// Nodes returns the informer of nodes, which have no namespace.
func (f *SharedInformerFactory) Nodes() TypedInformer[*corev1.Node] {
	return TypedInformer[*corev1.Node]{f.InformerFor(&corev1.Node{}, "nodes")}
}

// Namespaces returns the informer of namespaces.
func (f *SharedInformerFactory) Namespaces() TypedInformer[*corev1.Namespace] {
	return TypedInformer[*corev1.Namespace]{f.InformerFor(&corev1.Namespace{}, "namespaces")}
}

// ReplicaSets returns the informer of replica sets. The factory's client must be one of apps/v1.
func (f *SharedInformerFactory) ReplicaSets() TypedInformer[*appsv1.ReplicaSet] {
	return TypedInformer[*appsv1.ReplicaSet]{f.InformerFor(&appsv1.ReplicaSet{}, "replicasets")}
}

// Deployments returns the informer of deployments. The factory's client must be one of apps/v1.
func (f *SharedInformerFactory) Deployments() TypedInformer[*appsv1.Deployment] {
	return TypedInformer[*appsv1.Deployment]{f.InformerFor(&appsv1.Deployment{}, "deployments")}
}

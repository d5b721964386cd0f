package indexer

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lister reads objects of type T from an [Indexer]. What it returns is shared by all readers:
// copy before you write.
//
// It is generic, because all there is to a typed lister is the type: upstream generates one per
// resource and builds them, since 1.33, on this very shape.
//
// Upstream: k8s.io/client-go/listers/generic_helpers.go: ResourceIndexer
type Lister[T metav1.Object] struct {
	indexer   *Indexer
	resource  schema.GroupResource
	namespace string // "" for all of them
}

// NewLister returns a lister over all namespaces.
//
// Upstream: k8s.io/client-go/listers/generic_helpers.go: New
func NewLister[T metav1.Object](indexer *Indexer, resource schema.GroupResource) Lister[T] {
	return Lister[T]{indexer: indexer, resource: resource}
}

// Namespace returns a lister over one namespace.
//
// Upstream: k8s.io/client-go/listers/generic_helpers.go: NewNamespaced
func (l Lister[T]) Namespace(namespace string) Lister[T] {
	return Lister[T]{indexer: l.indexer, resource: l.resource, namespace: namespace}
}

// List returns the objects that match selector, in any order.
//
// Upstream: k8s.io/client-go/listers/generic_helpers.go: ResourceIndexer.List
// Upstream: k8s.io/client-go/tools/cache/listers.go: ListAllByNamespace
// Differs: cannot fail; every T has metadata.
func (l Lister[T]) List(selector labels.Selector) []T {
	var list []T
	for _, item := range l.candidates() {
		obj := item.(T)
		inNamespace := l.namespace == metav1.NamespaceAll || obj.GetNamespace() == l.namespace
		if inNamespace && selector.Matches(labels.Set(obj.GetLabels())) {
			list = append(list, obj)
		}
	}
	return list
}

// candidates returns the objects of one namespace by their index. Without a [NamespaceIndex],
// as for all namespaces, it returns all objects there are.
//
// Differs: logs no warning without the index.
func (l Lister[T]) candidates() []any {
	if l.namespace != metav1.NamespaceAll {
		if items, err := l.indexer.ByIndex(NamespaceIndex, l.namespace); err == nil {
			return items
		}
	}
	return l.indexer.List()
}

// Get returns one object, or a NotFound error (404). Without a namespace, name is the name of an object that has none.
//
// Upstream: k8s.io/client-go/listers/generic_helpers.go: ResourceIndexer.Get
func (l Lister[T]) Get(name string) (T, error) {
	key := name
	if l.namespace != "" {
		key = l.namespace + "/" + name
	}
	obj, exists, _ := l.indexer.GetByKey(key) // never an error
	if !exists {
		var none T
		return none, apierrors.NewNotFound(l.resource, name)
	}
	return obj.(T), nil
}

package indexer

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lister reads objects of type T from an [Indexer]. What it returns is shared by all readers:
// copy before you write.
//
// It is generic, because all there is to a typed lister is the type: upstream generates one per
// resource and builds them, since 1.33, on this very shape.
//
// Upstream: k8s.io/client-go/listers/generic_helpers.go: ResourceIndexer
type Lister[T runtime.Object] struct {
	indexer   Indexer
	resource  schema.GroupResource
	namespace string // "" for all of them
}

// NewLister returns a lister over all namespaces.
//
// Upstream: k8s.io/client-go/listers/generic_helpers.go: New
func NewLister[T runtime.Object](indexer Indexer, resource schema.GroupResource) Lister[T] {
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
func (l Lister[T]) List(selector labels.Selector) ([]T, error) {
	var list []T
	err := ListAllByNamespace(l.indexer, l.namespace, selector, func(obj any) { list = append(list, obj.(T)) })
	return list, err
}

// Get returns one object, or a NotFound error (404). Without a namespace, name is the name of an object that has none.
//
// Upstream: k8s.io/client-go/listers/generic_helpers.go: ResourceIndexer.Get
func (l Lister[T]) Get(name string) (T, error) {
	var none T
	key := name
	if l.namespace != "" {
		key = l.namespace + "/" + name
	}
	obj, exists, err := l.indexer.GetByKey(key)
	if err != nil {
		return none, err
	}
	if !exists {
		return none, apierrors.NewNotFound(l.resource, name)
	}
	return obj.(T), nil
}

// ListAll calls appendFn with every object of store that matches selector.
//
// Upstream: k8s.io/client-go/tools/cache/listers.go: ListAll
func ListAll(store Store, selector labels.Selector, appendFn func(obj any)) error {
	return appendMatching(store.List(), metav1.NamespaceAll, selector, appendFn)
}

// ListAllByNamespace calls appendFn with every object of one namespace that matches selector.
// Without a [NamespaceIndex] it looks at all objects there are.
//
// Upstream: k8s.io/client-go/tools/cache/listers.go: ListAllByNamespace
// Differs: logs no warning without the index.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector,
	appendFn func(obj any)) error {
	if namespace == metav1.NamespaceAll {
		return ListAll(indexer, selector, appendFn)
	}
	items, err := indexer.ByIndex(NamespaceIndex, namespace)
	if err != nil {
		return appendMatching(indexer.List(), namespace, selector, appendFn)
	}
	// The index has chosen the namespace already.
	return appendMatching(items, metav1.NamespaceAll, selector, appendFn)
}

func appendMatching(items []any, namespace string, selector labels.Selector, appendFn func(obj any)) error {
	everything := selector.Empty() && namespace == metav1.NamespaceAll
	for _, item := range items {
		if everything {
			appendFn(item)
			continue
		}
		accessor, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		inNamespace := namespace == metav1.NamespaceAll || accessor.GetNamespace() == namespace
		if inNamespace && selector.Matches(labels.Set(accessor.GetLabels())) {
			appendFn(item)
		}
	}
	return nil
}

package handlers

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	registry "listwatch/chapters/07-registry"
)

// Storage is the storage of one path. A route exists if the storage also implements the interface below for it.
// namespace is "" for cluster-scoped kinds and for all namespaces.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: Storage
type Storage interface {
	// Describe returns the description of the resource, or of the parent of a subresource.
	Describe() *registry.Resource
	// New returns an empty object of the kind that a request's body holds.
	New() runtime.Object
}

// Getter reads one object.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: Getter
type Getter interface {
	Get(ctx context.Context, namespace, name string, options *metav1.GetOptions) (runtime.Object, error)
}

// Lister reads a collection.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: Lister
type Lister interface {
	List(ctx context.Context, namespace string, options *metainternalversion.ListOptions) (runtime.Object, error)
}

// Watcher begins streams of events. The caller stops them.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: Watcher
type Watcher interface {
	Watch(ctx context.Context, namespace string, options *metainternalversion.ListOptions) (
		watch.Interface, error)
}

// Creater creates objects in a collection.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: Creater
type Creater interface {
	Create(ctx context.Context, namespace string, obj runtime.Object, options *metav1.CreateOptions) (runtime.Object,
		error)
}

// NamedCreater creates something under an object that exists, as a binding under its pod.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: NamedCreater
type NamedCreater interface {
	Create(ctx context.Context, namespace, name string, obj runtime.Object, options *metav1.CreateOptions) (
		runtime.Object, error)
}

// Updater changes one object, for PUT, and for PATCH if it is a [Getter] too. created reports whether the object is
// new.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: Updater
type Updater interface {
	Update(ctx context.Context, namespace, name string, info registry.UpdatedObjectInfo, forceAllowCreate bool,
		options *metav1.UpdateOptions) (obj runtime.Object, created bool, err error)
}

// GracefulDeleter deletes one object, at once or later.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: GracefulDeleter
type GracefulDeleter interface {
	Delete(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) (obj runtime.Object,
		immediate bool, err error)
}

// CollectionDeleter deletes the selected objects.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: CollectionDeleter
type CollectionDeleter interface {
	DeleteCollection(ctx context.Context, namespace string, options *metav1.DeleteOptions,
		listOptions *metainternalversion.ListOptions) (runtime.Object, error)
}

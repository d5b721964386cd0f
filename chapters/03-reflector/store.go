package reflector

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// ListerWatcher is the server as a reflector knows it. The reflector's goroutine makes the
// calls, one at a time. Both return promptly once ctx is done.
//
// Upstream: k8s.io/client-go/tools/cache/listwatch.go: ListerWatcherWithContext
// Differs: the context variant is the only one, and has the plain name.
type ListerWatcher interface {
	// List returns a list object, in one request: its items, its resource version, from which
	// a watch can go on, and if Limit cut it short a continue token, for the caller to use.
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)

	// Watch begins a stream of events. ctx bounds the whole stream, not only its beginning. The
	// caller calls Stop when it has had enough, even if the stream has ended by itself. After
	// an error there is nothing to stop.
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Store is what a reflector fills. Objects belong to the store from the call on. The reflector's goroutine makes all
// calls but Resync, which can come at the same time as another. While a call blocks, nothing is read from the watch.
//
// An error of Add, Update or Delete is counted and reported, and the reflector goes on: the store misses that event,
// and is told its version all the same. A 410 of theirs, and any error of Replace or Resync, ends the round, and the
// reflector begins again with a list.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: ReflectorStore
type Store interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	// Replace makes list, which is the store's from then on, its whole content as of resourceVersion.
	Replace(list []any, resourceVersion string) error
	// Resync makes the store look at everything it holds again. What that means is the store's affair.
	Resync() error
}

// ResourceVersionUpdater is a [Store] that gets the version of every event but initial ones, bookmarks included, after
// the event itself. A list's version comes with Replace instead.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: ResourceVersionUpdater
type ResourceVersionUpdater interface {
	UpdateResourceVersion(resourceVersion string)
}

// BookmarkStore is a [Store] that gets bookmarks, in order with the other events.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: ReflectorBookmarkStore
type BookmarkStore interface {
	Bookmark(resourceVersion string) error
}

// TransformingStore is a [Store] that changes objects before it keeps them. The reflector transforms a streamed initial
// state as it comes in, to keep only small objects; the store does so again in Replace, see [TransformFunc].
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: TransformingStore
type TransformingStore interface {
	Store
	// Transformer may return nil: no transformation.
	Transformer() TransformFunc
}

// TransformFunc returns what is to be stored in place of obj. It may change and return obj, which no other code knows
// yet. It runs on the reflector's goroutine, so it must not block. It gets no tombstone and no resync, but twice each
// object of a watch-list, so it must accept its own result. Its error loses an event, and fails a list.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: TransformFunc
type TransformFunc func(obj any) (any, error)

// KeyFunc returns the key under which a store knows obj.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: KeyFunc
type KeyFunc func(obj any) (string, error)

// MetaNamespaceKeyFunc returns "namespace/name", "name" without a namespace, and an error without metadata.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: MetaNamespaceKeyFunc
// Differs: an object is needed; upstream also takes an ExplicitKey, a key without its object.
func MetaNamespaceKeyFunc(obj any) (string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", fmt.Errorf("key of %T: %w", obj, err)
	}
	if namespace := accessor.GetNamespace(); namespace != "" {
		return namespace + "/" + accessor.GetName(), nil
	}
	return accessor.GetName(), nil
}

// Identify returns the key and the resource version under which p's records speak of obj; what
// obj does not have is returned as zero. While probes are off it returns at once.
func Identify(p *probe.Probe, keyOf KeyFunc, obj any) (key string, rv uint64) {
	if p == nil {
		return "", 0
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", 0
	}
	if accessor.GetName() != "" { // a bookmark's object has a version and no name
		key, _ = keyOf(obj)
	}
	return key, storage.ProbeVersion(accessor.GetResourceVersion())
}

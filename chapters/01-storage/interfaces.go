package storage

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Interface is a store of API objects that can be listed and watched. The etcd3 store
// implements it on etcd, the cacher package's CacheDelegator implements it in front of another
// Interface.
//
// Keys are those of [PrepareKey]: "/registry/pods/default/a". Objects that are handed out
// belong to the caller, except where a method says that they are shared. Errors are
// [*StorageError] or errors that carry a Kubernetes Status; the registry translates the former
// with [InterpretError].
//
// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: Interface
// Differs: a time to live is the storage's own business, not a parameter of writes; no function
// that may veto a deletion, which upstream's admission needs; no key checks against a
// compaction endpoint, no Stats, no ReadinessCheck.
type Interface interface {
	// Create stores obj at key and fills out with what was stored, resource version included.
	// obj must not carry a resource version. If the key exists, the error is KeyExists.
	Create(ctx context.Context, key string, obj, out runtime.Object) error

	// Delete removes the object at key and fills out with its last state, stamped with the
	// resource version of the deletion. preconditions, which may be nil, are checked against
	// the stored state; cached, if not nil, is a guess at it, which saves a read when right.
	Delete(
		ctx context.Context, key string, out runtime.Object,
		preconditions *Preconditions, cached runtime.Object,
	) error

	// Get fills out with the object at key. With opts.ResourceVersion "" the answer is the
	// newest state; with "0" any state will do; otherwise it is at least as new as asked.
	Get(ctx context.Context, key string, opts GetOptions, out runtime.Object) error

	// GetList fills listOut with the objects that opts selects, in key order, all seen at one
	// resource version, which becomes the list's. With opts.Recursive, key is a prefix,
	// otherwise one object's key.
	GetList(ctx context.Context, key string, opts ListOptions, listOut runtime.Object) error

	// Watch begins a stream of events for what opts selects. Changes come in resource version
	// order. Whether the state comes before them, in the order of keys, is decided by
	// opts.ResourceVersion and opts.SendInitialEvents. Objects in events are shared: they must
	// not be changed. The caller alone calls Stop: always, even if it has received nothing or
	// the stream has ended. A second Stop does nothing. After Stop, the caller receives until
	// ResultChan is closed. The producer alone closes it: after Stop, ctx's end, or its own. If
	// it fails, an ERROR event comes first.
	Watch(ctx context.Context, key string, opts ListOptions) (watch.Interface, error)

	// GuaranteedUpdate reads the object at key, hands it to update, and stores the result if no
	// other write came in between; otherwise it starts again with the new state, as often as it
	// takes. So update, which runs on the caller's goroutine and under no lock, may be called
	// more than once, and must not keep what it is given. Its error, or a failed precondition,
	// ends the call, unless it comes from an outdated cached. If the object does not exist the
	// error is KeyNotFound, or, with ignoreNotFound, update is called with a zero object. out
	// receives what is stored in the end.
	GuaranteedUpdate(
		ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
		preconditions *Preconditions, update UpdateFunc, cached runtime.Object,
	) error

	// RequestWatchProgress makes the source tell all watches how far they are, without waiting.
	RequestWatchProgress(ctx context.Context) error

	// GetCurrentResourceVersion returns the newest resource version of the store, by a read
	// that cannot be stale.
	GetCurrentResourceVersion(ctx context.Context) (uint64, error)
}

// UpdateFunc computes the new state from the current one. It may change and return current. It
// must be free of side effects: it is called again whenever another writer was faster.
type UpdateFunc func(current runtime.Object) (runtime.Object, error)

// GetOptions says how fresh the answer of a Get must be.
type GetOptions struct {
	IgnoreNotFound  bool   // a missing object gives a zero object instead of an error
	ResourceVersion string // "", "0" or at least this
}

// ListOptions selects what a list or a watch is about.
//
// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: ListOptions
type ListOptions struct {
	ResourceVersion      string
	ResourceVersionMatch metav1.ResourceVersionMatch // lists only: "", Exact or NotOlderThan
	Predicate            SelectionPredicate
	Recursive            bool // the key is a prefix
	ProgressNotify       bool // watches only: say, by bookmarks, how far an idle source is
	// Watches only: begin with the current state, or explicitly do not.
	SendInitialEvents *bool
}

// Preconditions must hold for the stored object, or the operation is refused with a conflict.
type Preconditions struct {
	UID             *types.UID
	ResourceVersion *string
}

// Check returns an InvalidObj error, which a client sees as 409 Conflict, if obj lacks the UID
// or the resource version that p names. A nil field or a nil p requires nothing. If obj is only
// a cache's guess, a store reads the real state before it returns the error.
func (p *Preconditions) Check(key string, obj runtime.Object) error {
	if p == nil {
		return nil
	}
	accessor, err := metaAccessor(obj)
	if err != nil {
		return err
	}
	if p.UID != nil && *p.UID != accessor.GetUID() {
		return NewInvalidObjError(key, fmt.Sprintf(
			"Precondition failed: UID in precondition: %s, UID in object meta: %s",
			*p.UID, accessor.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != accessor.GetResourceVersion() {
		return NewInvalidObjError(key, fmt.Sprintf(
			"Precondition failed: ResourceVersion in precondition: %s, "+
				"ResourceVersion in object meta: %s",
			*p.ResourceVersion, accessor.GetResourceVersion()))
	}
	return nil
}

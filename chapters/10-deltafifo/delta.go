package deltafifo

import (
	storage "listwatch/chapters/01-storage"
	reflector "listwatch/chapters/03-reflector"
)

// DeltaType says what happened to an object, as far as the queue knows. It does not decide what a handler sees: the
// store does, by having the key or not.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: DeltaType
type DeltaType string

// The types of a [Delta].
const (
	// Added, Updated and Deleted stand for one event of the watch each.
	Added   DeltaType = "Added"
	Updated DeltaType = "Updated"
	Deleted DeltaType = "Deleted"
	// Replaced is one object of a list. Whether it changed since we last saw it is not known.
	Replaced DeltaType = "Replaced"
	// Sync is one object of the local store, shown again because a resync is due.
	Sync DeltaType = "Sync"
	// ReplacedAll is a whole list as one delta; its object is a [ReplacedAllInfo].
	ReplacedAll DeltaType = "ReplacedAll"
	// SyncAll is a whole resync as one delta; its object is a [SyncAllInfo].
	SyncAll DeltaType = "SyncAll"
	// Bookmark carries a resource version and no change; its object is a [BookmarkInfo].
	Bookmark DeltaType = "Bookmark"
)

// Delta is one change. Object is one of these kinds:
//
//   - the API object after the change, or before it if it was deleted;
//   - a [DeletedFinalStateUnknown] if the deletion was inferred from a list;
//   - [ReplacedAllInfo], [SyncAllInfo] or [BookmarkInfo], for the types of these names.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: Delta
// Differs: carries its key, worked out once on entry; upstream works it out at every step.
type Delta struct {
	Type   DeltaType
	Object any
	Key    string // of Object; "" for ReplacedAll, SyncAll and Bookmark
}

// Deltas is a list of changes, the oldest first.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: Deltas
type Deltas []Delta

// DeletedFinalStateUnknown stands in for the object of a deletion that was missed: while the
// watch was broken, the object was deleted or left the selector, and the next list no longer
// had the key. Obj is the last state known, which may be older than the one that was deleted,
// or nil.
//
// Upstream: k8s.io/client-go/tools/cache/delta_fifo.go: DeletedFinalStateUnknown
type DeletedFinalStateUnknown struct {
	Key string
	Obj any
}

// ReplacedAllInfo is the object of a [ReplacedAll] delta. Objects have been transformed already.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: ReplacedAllInfo
type ReplacedAllInfo struct {
	ResourceVersion string
	Objects         []any
}

// SyncAllInfo is the object of a [SyncAll] delta. What is to be synced is known to the store, not to the queue.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: SyncAllInfo
type SyncAllInfo struct{}

// BookmarkInfo is the object of a [Bookmark] delta.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: BookmarkInfo
type BookmarkInfo struct {
	ResourceVersion string
}

// DeletionHandlingMetaNamespaceKeyFunc is [reflector.MetaNamespaceKeyFunc] for anything a handler's OnDelete may be
// given: the key of a [DeletedFinalStateUnknown] is written in it. It fails only without metadata.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: DeletionHandlingMetaNamespaceKeyFunc
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return tombstone.Key, nil
	}
	return reflector.MetaNamespaceKeyFunc(obj)
}

// VersionOf is [storage.VersionOf] for any object of a [Delta].
func VersionOf(obj any) uint64 {
	switch info := obj.(type) {
	case DeletedFinalStateUnknown:
		return storage.VersionOf(info.Obj)
	case ReplacedAllInfo:
		return storage.ProbeVersion(info.ResourceVersion)
	case BookmarkInfo:
		return storage.ProbeVersion(info.ResourceVersion)
	default:
		return storage.VersionOf(obj)
	}
}

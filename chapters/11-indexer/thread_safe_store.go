package indexer

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/observe/probe"
)

// The types under which a write is reported. A write is named for what it meant to the store, whatever it was called
// by the watch: an object that was not there is ADDED.
const (
	typeAdded       = "ADDED"
	typeModified    = "MODIFIED"
	typeDeleted     = "DELETED"
	typeBookmark    = "BOOKMARK"
	typeReplacedAll = string(deltafifo.ReplacedAll)
)

// ThreadSafeStore maps keys to objects and keeps indices over them. It also knows the resource
// version up to which it has been told everything, see
// [ThreadSafeStore.LastStoreSyncResourceVersion].
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: ThreadSafeStore
// Differs: the type itself; upstream has an interface of this name and one implementation.
type ThreadSafeStore struct {
	// Set by NewThreadSafeStore, never changed.
	probe *probe.Probe

	mu    sync.RWMutex // guards the fields below; innermost
	items map[string]any
	index storeIndex
	rv    string // of the newest write
}

// NewThreadSafeStore returns an empty store.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: NewThreadSafeStore
func NewThreadSafeStore(indexers Indexers, p *probe.Probe) *ThreadSafeStore {
	return &ThreadSafeStore{
		probe: p,
		items: map[string]any{},
		index: newStoreIndex(indexers),
	}
}

// Update stores obj under key, whether there was an object or not.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Update
func (c *ThreadSafeStore) Update(key string, obj any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updateLocked(key, obj)
}

// Delete removes the object under key, if there is one. obj is what the deletion was told with: its resource version
// is that of the deletion. It may be nil.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).DeleteWithObject
func (c *ThreadSafeStore) Delete(key string, obj any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleteLocked(key, obj)
}

func (c *ThreadSafeStore) updateLocked(key string, obj any) (old any, existed bool) {
	c.noteLocked(obj)
	old, existed = c.items[key]
	c.items[key] = obj
	c.index.update(key, old, obj)
	typ := typeAdded
	if existed {
		typ = typeModified
	}
	c.changedLocked(typ, key, obj)
	return old, existed
}

func (c *ThreadSafeStore) deleteLocked(key string, obj any) (old any, existed bool) {
	c.noteLocked(obj)
	old, existed = c.items[key]
	if existed {
		delete(c.items, key)
		c.index.update(key, old, nil)
	}
	c.changedLocked(typeDeleted, key, obj)
	return old, existed
}

// noteLocked moves the store's resource version to that of obj. A tombstone has none, and
// leaves it where it is.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: rvFromObject
func (c *ThreadSafeStore) noteLocked(obj any) {
	if accessor, err := meta.Accessor(obj); err == nil {
		c.rv = accessor.GetResourceVersion()
	}
}

// changedLocked reports a change of what is under key; obj says at which resource version.
func (c *ThreadSafeStore) changedLocked(typ, key string, obj any) {
	if c.probe != nil { // a version is not read for free
		c.probe.Event(probe.IndexerUpdated, typ, key, deltafifo.VersionOf(obj), len(c.items))
	}
}

// Recount reports every object, if there are at most limit: for a picture that had kept their number only. No change
// comes in between, because all of them are reported under mu.
//
// Differs: upstream draws no picture.
func (c *ThreadSafeStore) Recount(limit int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.items) > limit {
		return
	}
	for key, obj := range c.items {
		c.probe.At(probe.IndexerHolds, key, deltafifo.VersionOf(obj), len(c.items))
	}
}

// Bookmark notes that everything up to resourceVersion has been told.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Bookmark
func (c *ThreadSafeStore) Bookmark(resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rv = resourceVersion
	c.changedLocked(typeBookmark, "", deltafifo.BookmarkInfo{ResourceVersion: resourceVersion})
}

// LastStoreSyncResourceVersion answers "has my own write reached my cache?": a store whose writes come in the order of
// the server holds everything up to the version returned.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).LastStoreSyncResourceVersion
func (c *ThreadSafeStore) LastStoreSyncResourceVersion() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.rv
}

// AddIndexers adds indices, to a store that may be filled already.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).AddIndexers
func (c *ThreadSafeStore) AddIndexers(indexers Indexers) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.index.add(indexers); err != nil {
		return err
	}
	for key, obj := range c.items {
		for name, indexFunc := range indexers {
			c.index.updateSingle(name, indexFunc, key, nil, obj)
		}
	}
	return nil
}

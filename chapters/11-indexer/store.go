package indexer

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	reflector "listwatch/chapters/03-reflector"
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

// Config configures an [Indexer].
type Config struct {
	Indexers Indexers
	Probe    *probe.Probe
	// Unordered says that writes to different keys do not come in the order of the server, as is the case behind a
	// DeltaFIFO. LastStoreSyncResourceVersion then returns "": the newest write says nothing about older ones.
	Unordered bool
}

// Indexer holds objects under the keys they have themselves, and indices over them. It returns
// the version up to which it has everything: [Indexer.LastStoreSyncResourceVersion]. It is also
// a [reflector.Store], which a reflector can fill directly, without handlers. Any goroutine may
// call any method. A read sees one state, the next perhaps a newer one; reads wait for writes,
// and writes for reads. Readers share the objects, and must not write to them.
//
// Upstream: k8s.io/client-go/tools/cache/index.go: Indexer
// Upstream: k8s.io/client-go/tools/cache/store.go: cache
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: threadSafeMap
// Differs: one type for the three: upstream's threadSafeMap is given the keys, its cache works
// them out, and each is behind an interface. The key function is fixed. It has no Get,
// ListIndexFuncValues and GetIndexers.
type Indexer struct {
	// Set by NewIndexer, never changed.
	probe     *probe.Probe
	unordered bool

	mu    sync.RWMutex // guards the fields below; innermost
	items map[string]any
	index storeIndex
	rv    string // of the newest write
}

var (
	_ reflector.Store           = (*Indexer)(nil)
	_ reflector.BookmarkStore   = (*Indexer)(nil)
	_ deltafifo.KeyListerGetter = (*Indexer)(nil)
)

// NewIndexer returns an empty store.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: NewIndexer
func NewIndexer(cfg Config) *Indexer {
	return &Indexer{
		probe: cfg.Probe, unordered: cfg.Unordered, items: map[string]any{}, index: newStoreIndex(cfg.Indexers),
	}
}

// Add is Update: the store does not mind whether the object is new.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Add
func (c *Indexer) Add(obj any) error { return c.Update(obj) }

// Update stores obj under its key, whether there was an object or not. Its only error is that of an obj without a key.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Update
func (c *Indexer) Update(obj any) error {
	key, err := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updateLocked(key, obj)
	return nil
}

// Delete removes what is stored under the key of obj, if there is anything. obj may be a
// [deltafifo.DeletedFinalStateUnknown]; otherwise its resource version is that of the deletion. It fails as Update.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Delete
func (c *Indexer) Delete(obj any) error {
	key, err := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleteLocked(key, obj)
	return nil
}

// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Update
func (c *Indexer) updateLocked(key string, obj any) (old any, existed bool) {
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

// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).DeleteWithObject
func (c *Indexer) deleteLocked(key string, obj any) (old any, existed bool) {
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
func (c *Indexer) noteLocked(obj any) {
	if accessor, err := meta.Accessor(obj); err == nil {
		c.rv = accessor.GetResourceVersion()
	}
}

// changedLocked reports a change of what is under key; obj says at which resource version.
func (c *Indexer) changedLocked(typ, key string, obj any) {
	if c.probe != nil { // a version is not read for free
		c.probe.Event(probe.IndexerUpdated, typ, key, deltafifo.VersionOf(obj), len(c.items))
	}
}

// Replace makes list the whole content of the store. Its only error, for an object without a key, changes nothing.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Replace
func (c *Indexer) Replace(list []any, resourceVersion string) error {
	_, _, err := c.ReplaceAll(list, resourceVersion)
	return err
}

// ReplaceAll is Replace for callers that have to report it: changes are the updates in the
// order of list, each with what was there before; gone are the deletions, sorted by key, with
// the last known object in Old. It fails as Replace does.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Replace
// Differs: reports what changed; upstream compares before, and its deletions are unsorted.
func (c *Indexer) ReplaceAll(
	list []any, resourceVersion string,
) (changes, gone []Transaction, err error) {
	changes = make([]Transaction, 0, len(list))
	items := make(map[string]any, len(list))
	for _, obj := range list {
		key, err := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			return nil, nil, fmt.Errorf("replace store at %s: %w", resourceVersion, err)
		}
		txn := Transaction{Type: TransactionTypeUpdate, Key: key, Object: obj}
		changes = append(changes, txn)
		items[key] = obj // of two with the same key the later one counts
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.items
	c.items = items
	c.rv = resourceVersion
	c.index = newStoreIndex(c.index.indexers)
	for key, obj := range items {
		c.index.update(key, nil, obj)
	}
	c.changedLocked(typeReplacedAll, "", deltafifo.ReplacedAllInfo{
		ResourceVersion: resourceVersion})
	return changes, compare(before, items, changes), nil
}

// Bookmark notes that the store has everything up to resourceVersion. It never fails.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Bookmark
func (c *Indexer) Bookmark(resourceVersion string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rv = resourceVersion
	c.changedLocked(typeBookmark, "", deltafifo.BookmarkInfo{ResourceVersion: resourceVersion})
	return nil
}

// Resync does nothing: a store has no handlers to tell.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Resync
func (c *Indexer) Resync() error { return nil }

// AddIndexers adds more indexers, also to a filled store, which it indexes under the write lock. If a name exists, it
// returns an error, and adds nothing.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).AddIndexers
func (c *Indexer) AddIndexers(indexers Indexers) error {
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

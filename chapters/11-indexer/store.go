package indexer

import (
	"fmt"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/observe/probe"
)

// Store holds objects under the keys they have themselves. It is a [reflector.Store], too, so a reflector can fill one
// directly when no handler needs to be told.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: Store
type Store interface {
	reflector.Store

	// List returns all objects in any order. They are shared: callers must not write to them.
	List() []any
	// ListKeys returns the keys of all objects in any order.
	ListKeys() []string
	// Get returns the object that is stored under the key of obj.
	Get(obj any) (item any, exists bool, err error)
	// GetByKey returns the object stored under key. It never returns an error.
	GetByKey(key string) (item any, exists bool, err error)
	// LastStoreSyncResourceVersion returns the resource version up to which the store has been told everything, or ""
	// if it cannot tell.
	LastStoreSyncResourceVersion() string
}

// Indexer is a [Store] that finds objects by more than their key.
//
// Upstream: k8s.io/client-go/tools/cache/index.go: Indexer
// Differs: has no ListIndexFuncValues and no GetIndexers.
type Indexer interface {
	Store

	// Index returns the objects that share a value of the named index with obj.
	Index(indexName string, obj any) ([]any, error)
	// IndexKeys returns the keys of the objects under value in the named index, sorted.
	IndexKeys(indexName, value string) ([]string, error)
	// ByIndex returns the objects under value in the named index. If there is no index of
	// that name, it returns an error.
	ByIndex(indexName, value string) ([]any, error)
	// AddIndexers adds more indexers, also to a filled store. Names that exist are an error,
	// and nothing is added.
	AddIndexers(newIndexers Indexers) error
}

// Config configures a [Cache].
type Config struct {
	Indexers Indexers
	Probe    *probe.Probe
	// Unordered says that writes to different keys do not come in the order of the server, as is the case behind a
	// DeltaFIFO. LastStoreSyncResourceVersion then returns "": the newest write says nothing about older ones.
	Unordered bool
}

// Cache is the one implementation of [Store] and [Indexer]: a [ThreadSafeStore] that is given objects, and works out
// their keys.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: cache
// Differs: the key function is fixed. What needs no key is the ThreadSafeStore's method; upstream hands each on.
type Cache struct {
	*ThreadSafeStore // has the lock

	unordered bool // set by NewIndexer, never changed
}

var _ Indexer = (*Cache)(nil)
var _ reflector.BookmarkStore = (*Cache)(nil)
var _ deltafifo.KeyListerGetter = (*Cache)(nil)

// NewIndexer returns an empty store.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: NewIndexer
func NewIndexer(cfg Config) *Cache {
	return &Cache{ThreadSafeStore: NewThreadSafeStore(cfg.Indexers, cfg.Probe), unordered: cfg.Unordered}
}

// Key returns the key under which the store keeps obj.
func (c *Cache) Key(obj any) (string, error) {
	key, err := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", deltafifo.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// Add is Update: the store does not mind whether the object is new.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Add
func (c *Cache) Add(obj any) error { return c.Update(obj) }

// Update stores obj under its key.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Update
func (c *Cache) Update(obj any) error {
	key, err := c.Key(obj)
	if err != nil {
		return err
	}
	c.ThreadSafeStore.Update(key, obj)
	return nil
}

// Delete removes what is stored under the key of obj, which may be a [deltafifo.DeletedFinalStateUnknown].
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Delete
func (c *Cache) Delete(obj any) error {
	key, err := c.Key(obj)
	if err != nil {
		return err
	}
	c.ThreadSafeStore.Delete(key, obj)
	return nil
}

// Replace makes list the whole content of the store.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Replace
func (c *Cache) Replace(list []any, resourceVersion string) error {
	_, _, err := c.ReplaceAll(list, resourceVersion)
	return err
}

// ReplaceAll is Replace for callers that have to report it: changes are the updates in the order of list, each
// with what was there before; gone are the deletions.
func (c *Cache) ReplaceAll(list []any, resourceVersion string) (changes, gone []Transaction, err error) {
	changes = make([]Transaction, 0, len(list))
	for _, obj := range list {
		key, err := c.Key(obj)
		if err != nil {
			return nil, nil, fmt.Errorf("replace store at %s: %w", resourceVersion, err)
		}
		changes = append(changes, Transaction{Type: TransactionTypeUpdate, Key: key, Object: obj})
	}
	gone = c.ThreadSafeStore.Replace(changes, resourceVersion)
	return changes, gone, nil
}

// Bookmark notes that everything up to resourceVersion has been told.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Bookmark
func (c *Cache) Bookmark(resourceVersion string) error {
	c.ThreadSafeStore.Bookmark(resourceVersion)
	return nil
}

// Resync does nothing: a store has no handlers to tell.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Resync
func (c *Cache) Resync() error { return nil }

// LastStoreSyncResourceVersion implements [Store].
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).LastStoreSyncResourceVersion
func (c *Cache) LastStoreSyncResourceVersion() string {
	if c.unordered {
		return ""
	}
	return c.ThreadSafeStore.LastStoreSyncResourceVersion()
}

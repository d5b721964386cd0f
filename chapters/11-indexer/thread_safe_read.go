package indexer

import (
	"maps"
	"slices"
)

// Get returns the object under key.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Get
func (c *ThreadSafeStore) Get(key string) (obj any, exists bool) {
	c.mu.RLock()
	obj, exists = c.shelf.get(key)
	c.mu.RUnlock() // not deferred: nothing above can panic, and no read is made more often than this one
	return obj, exists
}

// List returns all objects in any order.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).List
func (c *ThreadSafeStore) List() []any {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.shelf.list()
}

// ListKeys returns all keys in any order.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).ListKeys
func (c *ThreadSafeStore) ListKeys() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(c.shelf.items)), maps.Keys(c.shelf.items))
}

// Index returns the objects that share a value of the named index with obj, which need not be stored itself.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Index
func (c *ThreadSafeStore) Index(name string, obj any) ([]any, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	places, err := c.index.findLike(name, obj)
	if err != nil {
		return nil, err
	}
	return c.shelf.objects(places), nil
}

// ByIndex returns the objects under value in the named index.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).ByIndex
func (c *ThreadSafeStore) ByIndex(name, value string) ([]any, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	places, err := c.index.find(name, value)
	if err != nil {
		return nil, err
	}
	return c.shelf.objects(places), nil
}

// IndexKeys returns the keys of the objects under value in the named index, sorted.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).IndexKeys
func (c *ThreadSafeStore) IndexKeys(name, value string) ([]string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	places, err := c.index.find(name, value)
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(places))
	for at := range places {
		keys = append(keys, c.shelf.entries[at].key)
	}
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values under which the named index has anything, in any order.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).ListIndexFuncValues
func (c *ThreadSafeStore) ListIndexFuncValues(name string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Keys(c.index.indices[name]))
}

// GetIndexers returns a copy of the indexers.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).GetIndexers
func (c *ThreadSafeStore) GetIndexers() Indexers {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return maps.Clone(c.index.indexers)
}

package indexer

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Get returns the object under key.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Get
func (c *ThreadSafeStore) Get(key string) (obj any, exists bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	obj, exists = c.items[key]
	return obj, exists
}

// List returns all objects in any order.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).List
func (c *ThreadSafeStore) List() []any {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]any, 0, len(c.items))
	for _, obj := range c.items {
		list = append(list, obj)
	}
	return list
}

// ListKeys returns all keys in any order.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).ListKeys
func (c *ThreadSafeStore) ListKeys() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(c.items)), maps.Keys(c.items))
}

// Index returns the objects that share a value of the named index with obj, which need not be stored itself.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Index
func (c *ThreadSafeStore) Index(name string, obj any) ([]any, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys, err := c.index.findLike(name, obj)
	if err != nil {
		return nil, err
	}
	return c.objectsLocked(keys), nil
}

// ByIndex returns the objects under value in the named index.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).ByIndex
func (c *ThreadSafeStore) ByIndex(name, value string) ([]any, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys, err := c.index.find(name, value)
	if err != nil {
		return nil, err
	}
	return c.objectsLocked(keys), nil
}

// objectsLocked returns the objects under keys, in any order. mu is held for reading at least.
func (c *ThreadSafeStore) objectsLocked(keys sets.Set[string]) []any {
	list := make([]any, 0, len(keys))
	for key := range keys {
		list = append(list, c.items[key])
	}
	return list
}

// IndexKeys returns the keys of the objects under value in the named index, sorted.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).IndexKeys
func (c *ThreadSafeStore) IndexKeys(name, value string) ([]string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys, err := c.index.find(name, value)
	if err != nil {
		return nil, err
	}
	return sets.List(keys), nil
}

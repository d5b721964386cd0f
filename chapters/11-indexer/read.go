package indexer

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/observe/probe"
)

// GetByKey returns the object stored under key. It never returns an error.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).GetByKey
func (c *Indexer) GetByKey(key string) (item any, exists bool, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	item, exists = c.items[key]
	return item, exists, nil
}

// List returns all objects of one moment, in any order. They are shared: do not write to them. The slice is yours.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).List
func (c *Indexer) List() []any {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.AppendSeq(make([]any, 0, len(c.items)), maps.Values(c.items))
}

// ListKeys returns the keys of all objects in any order.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).ListKeys
func (c *Indexer) ListKeys() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(c.items)), maps.Keys(c.items))
}

// Index returns the objects that share a value of the named index with obj, which need not be stored. It returns an
// error if there is no index of that name, or the index function's error for obj.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Index
func (c *Indexer) Index(name string, obj any) ([]any, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys, err := c.index.findLike(name, obj)
	return c.objectsLocked(keys), err
}

// ByIndex returns the objects under value in the named index. If there is no index of that name, it returns an error.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).ByIndex
func (c *Indexer) ByIndex(name, value string) ([]any, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys, err := c.index.find(name, value)
	return c.objectsLocked(keys), err
}

// objectsLocked returns the objects under keys, in any order. mu is held for reading at least.
func (c *Indexer) objectsLocked(keys sets.Set[string]) []any {
	list := make([]any, 0, len(keys))
	for key := range keys {
		list = append(list, c.items[key])
	}
	return list
}

// IndexKeys returns the keys of the objects under value in the named index, sorted, or ByIndex's error.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).IndexKeys
func (c *Indexer) IndexKeys(name, value string) ([]string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys, err := c.index.find(name, value)
	return sets.List(keys), err
}

// LastStoreSyncResourceVersion answers "has my own write reached my cache?": a store whose writes come in the order of
// the server holds everything up to the version returned. It is "" before the first write, and always if Unordered.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).LastStoreSyncResourceVersion
func (c *Indexer) LastStoreSyncResourceVersion() string {
	if c.unordered {
		return ""
	}
	return c.Snapshot().ResourceVersion
}

// Snapshot is the state of a store at one moment.
type Snapshot struct {
	Objects         int    `json:"objects"`
	ResourceVersion string `json:"resourceVersion"` // of the newest write, also if Unordered
}

// Snapshot returns the state of the store.
func (c *Indexer) Snapshot() Snapshot {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return Snapshot{Objects: len(c.items), ResourceVersion: c.rv}
}

// Recount reports every object, if there are at most limit: for a picture that had kept their number only. No change
// comes in between, because all of them are reported under mu.
//
// Differs: upstream draws no picture.
func (c *Indexer) Recount(limit int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.items) > limit {
		return
	}
	for key, obj := range c.items {
		c.probe.At(probe.IndexerHolds, key, deltafifo.VersionOf(obj), len(c.items))
	}
}

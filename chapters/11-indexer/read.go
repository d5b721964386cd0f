package indexer

// List implements [Store].
func (c *Cache) List() []any { return c.storage.List() }

// ListKeys implements [Store].
func (c *Cache) ListKeys() []string { return c.storage.ListKeys() }

// Get implements [Store].
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).Get
func (c *Cache) Get(obj any) (item any, exists bool, err error) {
	key, err := c.Key(obj)
	if err != nil {
		return nil, false, err
	}
	return c.GetByKey(key)
}

// GetByKey implements [Store] and [deltafifo.KeyListerGetter].
//
// Upstream: k8s.io/client-go/tools/cache/store.go: (*cache).GetByKey
func (c *Cache) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = c.storage.Get(key)
	return item, exists, nil
}

// Index implements [Indexer].
func (c *Cache) Index(indexName string, obj any) ([]any, error) {
	return c.storage.Index(indexName, obj)
}

// IndexKeys implements [Indexer].
func (c *Cache) IndexKeys(indexName, value string) ([]string, error) {
	return c.storage.IndexKeys(indexName, value)
}

// ListIndexFuncValues implements [Indexer].
func (c *Cache) ListIndexFuncValues(indexName string) []string {
	return c.storage.ListIndexFuncValues(indexName)
}

// ByIndex implements [Indexer].
func (c *Cache) ByIndex(indexName, value string) ([]any, error) {
	return c.storage.ByIndex(indexName, value)
}

// GetIndexers implements [Indexer].
func (c *Cache) GetIndexers() Indexers { return c.storage.GetIndexers() }

// AddIndexers implements [Indexer].
func (c *Cache) AddIndexers(newIndexers Indexers) error { return c.storage.AddIndexers(newIndexers) }

// Snapshot is the state of a store at one moment.
type Snapshot struct {
	Objects         int    `json:"objects"`
	ResourceVersion string `json:"resourceVersion"` // of the newest write, also if Unordered
}

// Snapshot returns the state of the store.
func (c *Cache) Snapshot() Snapshot {
	c.storage.mu.RLock()
	defer c.storage.mu.RUnlock()
	return Snapshot{Objects: len(c.storage.items), ResourceVersion: c.storage.rv}
}

package indexer

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
	item, exists = c.ThreadSafeStore.Get(key)
	return item, exists, nil
}

// Snapshot is the state of a store at one moment.
type Snapshot struct {
	Objects         int    `json:"objects"`
	ResourceVersion string `json:"resourceVersion"` // of the newest write, also if Unordered
}

// Snapshot returns the state of the store.
func (c *Cache) Snapshot() Snapshot {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return Snapshot{Objects: len(c.items), ResourceVersion: c.rv}
}

package cacher

import (
	"cmp"
	"slices"
	"time"

	reflector "listwatch/chapters/03-reflector"
	watchcache "listwatch/chapters/04-watchcache"
	cachewatcher "listwatch/chapters/05-cachewatcher"
)

// Snapshot is the state of a [Cacher], for the page.
type Snapshot struct {
	Resource   string `json:"resource"`
	Ready      bool   `json:"ready"`
	Generation int    `json:"generation"` // the present one; 0 while not ready
	NotReady   string `json:"notReady,omitempty"`

	IncomingLen   int           `json:"incomingLen"`
	IncomingCap   int           `json:"incomingCap"`
	Dispatch      string        `json:"dispatch"`
	Dispatching   bool          `json:"dispatching"`
	LastProcessed uint64        `json:"lastProcessed"` // everything up to it has been handed to every watcher
	Budget        time.Duration `json:"budget"`        // nanoseconds that the dispatcher may wait for slow watchers now
	NDispatched   int64         `json:"nDispatched"`   // events taken from incoming since the beginning, with bookmarks
	NTerminated   int64         `json:"nTerminated"`   // watchers closed because they did not keep up

	Cache     watchcache.Snapshot     `json:"cache"`
	Reflector reflector.Snapshot      `json:"reflector"`
	Watchers  []cachewatcher.Snapshot `json:"watchers"` // in the order of their registration
}

// Recount is [watchcache.WatchCache.Recount] of the cache.
func (c *Cacher) Recount(limit int) { c.watchCache.Recount(limit) }

// Snapshot returns the state. Its parts are read one after the other under short locks: they may be an event apart.
func (c *Cacher) Snapshot() Snapshot {
	generation, _, err := c.ready.check()
	s := Snapshot{
		Resource:      c.config.Resource.Resource,
		Ready:         err == nil,
		Generation:    generation,
		IncomingLen:   len(c.incoming),
		IncomingCap:   cap(c.incoming),
		Dispatch:      c.config.Dispatch,
		LastProcessed: c.lastProcessedResourceVersion.Load(),
		Budget:        c.budget.available(),
		NDispatched:   c.nDispatched.Load(),
		NTerminated:   c.nTerminated.Load(),
		Cache:         c.watchCache.Snapshot(),
		Reflector:     c.reflector.Snapshot(),
	}
	if err != nil {
		s.NotReady = err.Error()
	}
	var watchers []*cachewatcher.CacheWatcher
	s.Dispatching, watchers = c.registered()
	s.Watchers = make([]cachewatcher.Snapshot, 0, len(watchers))
	for _, watcher := range watchers {
		s.Watchers = append(s.Watchers, watcher.Snapshot())
	}
	slices.SortFunc(s.Watchers, func(a, b cachewatcher.Snapshot) int { // "w2" before "w10"
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return s
}

// registered returns the registered watchers. Watchers that are being drained are no longer registered.
func (c *Cacher) registered() (dispatching bool, watchers []*cachewatcher.CacheWatcher) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.dispatching, c.watchers.listLocked()
}

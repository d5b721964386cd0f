package cacher

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	reflector "listwatch/chapters/03-reflector"
	watchcache "listwatch/chapters/04-watchcache"
	cachewatcher "listwatch/chapters/05-cachewatcher"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

const (
	incomingSize                  = 100              // upstream's: events by which the dispatcher may lag
	storageWatchListPageSize      = 10000            // upstream's: a page of the cacher's own lists
	maxInternalErrorRetryDuration = 30 * time.Second // upstream's: etcd elects a leader in less
	startCachingPeriod            = time.Second      // upstream's: between two attempts to fill the cache
)

// Cacher serves lists and watches of one resource from memory.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: Cacher
// Differs: Run instead of goroutines started by the constructor; incoming carries pointers to
// events that never change, instead of copies; no size estimator, no sharded watches; no
// incomingHWM, which logs each new highest length of incoming.
type Cacher struct {
	// Set by New, never changed.
	config     Config
	clock      clock.WithTicker
	versioner  storage.APIObjectVersioner
	probe      *probe.Probe
	watchCache *watchcache.WatchCache
	reflector  *reflector.Reflector
	ready      *ready
	budget     *timeBudget
	metrics    *metrics

	// processEvent sends on incoming, on the reflector's goroutine, and blocks while incoming
	// is full: so a slow dispatcher slows down the watch on the storage. keepCaching closes
	// incoming, on the same goroutine.
	incoming chan *watchcache.Event

	// Written by dispatchEvents: everything up to it has been handed to every watcher.
	lastProcessedResourceVersion atomic.Uint64
	nDispatched, nTerminated     atomic.Int64
	nInit                        atomic.Int64 // events of all watchers' intervals

	// Go is called only under mu and while ready, so never after Run has begun to wait.
	watcherRoutines routine.Group

	// Guards the fields below; taken after the watchCache's lock, before ready.mu.
	mu               sync.RWMutex
	watcherIdx       int
	watchers         indexedWatchers
	bookmarkWatchers *cachewatcher.BookmarkTimeBuckets
	// An event is being handed out: no watcher's input may be closed.
	dispatching    bool
	watchersToStop []*cachewatcher.CacheWatcher // stopped when the dispatch is finished

	// Owned by the dispatchEvents goroutine; reused from event to event.
	watchersBuffer  []*cachewatcher.CacheWatcher // those that the event concerns
	blockedWatchers []*cachewatcher.CacheWatcher // those of them that had no room
	// Watchers that need a place in the buckets again.
	expiredBookmarkWatchers []*cachewatcher.CacheWatcher

	// Owned by the startCaching goroutine.
	caching time.Time // when this attempt to fill the cache began

	// Sent by dispatchEvents, received by forgetProcessed, never closed. Unbuffered.
	forgotten chan struct{}
}

// New returns a cache that is empty, and not ready, until it is run. New starts nothing, and fails if config makes no
// sense.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: NewCacherFromConfig
func New(config Config) (*Cacher, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.Dispatch = cmp.Or(config.Dispatch, TwoPhase)
	c := &Cacher{
		config:           config,
		clock:            config.Clock,
		probe:            config.Probe.Subject("cacher"),
		ready:            newReady(config.Clock),
		budget:           newTimeBudget(config.Clock),
		incoming:         make(chan *watchcache.Event, incomingSize),
		forgotten:        make(chan struct{}),
		watchers:         newIndexedWatchers(),
		bookmarkWatchers: cachewatcher.NewBookmarkTimeBuckets(config.Clock),
		metrics:          newMetrics(config.Resource),
	}
	c.watchCache = watchcache.New(watchcache.Config{
		KeyFunc:                   config.KeyFunc,
		GetAttrs:                  config.GetAttrs,
		Trigger:                   config.Trigger,
		EventHandler:              c.processEvent,
		OnReplace:                 c.onReplaceLocked,
		RequestWatchProgress:      config.Storage.RequestWatchProgress,
		GetCurrentResourceVersion: config.Storage.GetCurrentResourceVersion,
		ReadWait:                  c.metrics.readWait,
		Clock:                     config.Clock,
		Patience:                  config.Patience,
		Probe:                     c.probe,
		RingCapacity:              config.RingCapacity,
	})
	c.reflector = reflector.New(reflector.Config{
		Name:                          "storage/cacher: " + config.ResourcePrefix,
		ListerWatcher:                 listerWatcher{&c.config},
		Store:                         c.watchCache,
		Clock:                         config.Clock,
		Probe:                         c.probe,
		UseWatchList:                  config.UseWatchList,
		WatchListPageSize:             storageWatchListPageSize,
		MaxInternalErrorRetryDuration: maxInternalErrorRetryDuration,
		KeyOf:                         config.KeyFunc,
	})
	if err := c.registerMetrics(config.Registry); err != nil {
		return nil, fmt.Errorf("cacher for %s: %w", config.Resource, err)
	}
	return c, nil
}

// Run fills the cache, keeps it current and serves its watchers until ctx is done. It returns when everything it
// started, watchers included, has ended. It is called once.
func (c *Cacher) Run(ctx context.Context) {
	var routines routine.Group
	routines.Go(ctx, "cacher.dispatchEvents", c.dispatchEvents)
	routines.Go(ctx, "cacher.startCaching", c.keepCaching)
	routines.Go(ctx, "cacher.compact", c.followCompactions)
	c.watchCache.Run(ctx)

	// First no new watchers, then none at all: registering and ending are both done under mu, and registering asks
	// ready, so no watcher can come in between.
	c.ready.stop()
	c.terminateAllWatchers()
	routines.Wait()
	c.watcherRoutines.Wait()
	c.probe.At(probe.CacherStopped, "", 0)
}

// keepCaching begins again, a second later, whenever the cache has lost its source. It is the goroutine of the one
// writer into the watchCache, and closes incoming when no more events will be written.
func (c *Cacher) keepCaching(ctx context.Context) {
	defer close(c.incoming)
	for ctx.Err() == nil {
		c.startCaching(ctx)
		_ = routine.Sleep(ctx, c.clock, startCachingPeriod) // ended early: the loop looks at ctx, too
	}
}

// startCaching fills the cache and follows the storage until that fails in a way that calls for
// a new list: with 410, or with 500 for 30 s. All watchers are ended first: the events
// between the old state and the new one will never be known, so no watcher that has seen the
// old state can get the difference. Their clients come back, each with its own version.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).startCaching
func (c *Cacher) startCaching(ctx context.Context) {
	c.terminateAllWatchers()
	c.caching = c.clock.Now()
	err := c.reflector.ListAndWatch(ctx)
	generation := c.ready.setError(err)
	c.forgetProcessed()
	reason := "the watch on the storage has ended"
	if err != nil {
		reason = err.Error()
		c.metrics.initializationErrors.Inc()
	}
	c.probe.Text(probe.CacherNotReady, reason, "", 0, generation)
}

// onReplaceLocked runs under the watchCache's lock, when the first state of a generation is in the watchCache.
func (c *Cacher) onReplaceLocked(rv uint64) {
	generation := c.ready.setReady() // takes ready.mu, the last lock in the order
	c.metrics.initialized(c.clock.Since(c.caching))
	c.probe.At(probe.CacherReady, "", rv, generation)
}

// Ready reports whether reads and watches are served.
func (c *Cacher) Ready() bool {
	_, _, err := c.ready.check()
	return err == nil
}

// Resource returns the name of the cached resource, such as "pods".
func (c *Cacher) Resource() string { return c.config.Resource.Resource }

// RingCapacity is [watchcache.WatchCache.RingCapacity].
func (c *Cacher) RingCapacity() (now, fixed int) { return c.watchCache.RingCapacity() }

// SetRingCapacity is [watchcache.WatchCache.SetRingCapacity].
func (c *Cacher) SetRingCapacity(fixed int) { c.watchCache.SetRingCapacity(fixed) }

// Wait returns when the cacher is ready, with an error if ctx is done or the cacher stopped before.
func (c *Cacher) Wait(ctx context.Context) error { return c.ready.wait(ctx) }

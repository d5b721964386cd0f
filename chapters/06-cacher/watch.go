package cacher

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	cachewatcher "listwatch/chapters/05-cachewatcher"
	"listwatch/internal/observe/probe"
)

// watchRequest is a watch that is being prepared, and later the watch's entry in the Cacher's lists.
type watchRequest struct {
	cacher      *Cacher
	key         string
	opts        storage.ListOptions
	requestedRV uint64 // the version that the client named, 0 for "" and "0"
	requiredRV  uint64 // the version that the cache must have reached
	generation  int    // the generation of the cache in which the request came

	scope        namespacedName
	triggerValue string
	triggerUsed  bool

	watcher *cachewatcher.CacheWatcher
}

// Watch begins a watch. ctx bounds its whole life; if it has a deadline, the watcher is sent a
// bookmark shortly before. If the state comes first, Watch waits for the cache, at most 3 s.
//
// Watch returns 400 for a malformed key, a [storage.InvalidError] for an unparsable version,
// and 429 with Retry-After while the cache is not ready. Once these are passed, every error
// comes as an event of the stream, as it does from a storage that has no cache in front of it.
// If the cache begins another generation while the watch is being prepared, the stream has
// already ended.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).Watch
// Differs: support of progress requests is taken for granted.
func (c *Cacher) Watch(
	ctx context.Context, key string, opts storage.ListOptions,
) (watch.Interface, error) {
	req, err := c.newWatchRequest(key, opts)
	if err != nil {
		return nil, err
	}
	if err := c.reachRequiredVersion(ctx, req); err != nil {
		return newErrWatcher(err, c.probe), nil
	}
	// The watcher is made before any lock is taken: it allocates two channels, and that can
	// mean waiting for the garbage collector.
	req.watcher = c.newWatcher(ctx, req)
	return c.startWatch(ctx, req), nil
}

// newWatchRequest checks the request and reads the generation, before any wait.
func (c *Cacher) newWatchRequest(key string, opts storage.ListOptions) (*watchRequest, error) {
	key, err := c.prepareKey(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	rv, err := c.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	generation, downtime, err := c.ready.check()
	if err != nil {
		return nil, apierrors.NewTooManyRequests(err.Error(), retryAfter(downtime))
	}
	req := &watchRequest{cacher: c, key: key, opts: opts, requestedRV: rv, generation: generation}
	req.scope = scopeOf(&c.config, key).narrowed(opts.Predicate)
	req.triggerValue, req.triggerUsed = c.config.Trigger.PinnedBy(&opts.Predicate)
	return req, nil
}

// prepareKey returns key as this package and the stores below compare keys, or 400.
//
// Differs: upstream's error has no status, which makes it 500 in the end.
func (c *Cacher) prepareKey(key string, recursive bool) (string, error) {
	prepared, err := storage.PrepareKey(c.config.ResourcePrefix, key, recursive)
	if err != nil {
		return "", apierrors.NewBadRequest(err.Error())
	}
	return prepared, nil
}

// reachRequiredVersion finds out which version the watch's initial events must have reached, and waits until the cache
// has it. A watch without initial events does not wait: its events will come when they happen.
//
// It returns without a lock. That is fine, because the cache only moves forward; and it must be so, because a reader
// that waited for the cache and held its lock would keep the cache's only writer out.
func (c *Cacher) reachRequiredVersion(ctx context.Context, req *watchRequest) error {
	initial := req.opts.SendInitialEvents
	req.requiredRV = req.requestedRV
	if req.opts.ResourceVersion == "" && initial != nil {
		rv, err := c.config.Storage.GetCurrentResourceVersion(ctx)
		if err != nil {
			return err
		}
		req.requiredRV = rv
	}
	if initial == nil || !*initial {
		return nil
	}
	return c.watchCache.WaitUntilFresh(ctx, req.key, req.requiredRV)
}

func (c *Cacher) newWatcher(ctx context.Context, req *watchRequest) *cachewatcher.CacheWatcher {
	deadline, _ := ctx.Deadline()
	pred := req.opts.Predicate
	return cachewatcher.New(cachewatcher.Config{
		ChanSize: c.watchCache.SuggestedWatchChannelSize(c.config.Trigger != nil, req.triggerUsed),
		Filter:   cachewatcher.Filter{Key: req.key, Predicate: pred},
		Deadline: deadline,
		Text:     textOf(req),
	})
}

// describe returns the watch's key, and its selectors of labels and fields.
func describe(req *watchRequest) []string {
	labels, fields := req.opts.Predicate.Describe()
	return []string{req.key, labels, fields}
}

// textOf returns the same as one text, without selectors that select every object.
func textOf(req *watchRequest) string {
	text := req.key
	labels, fields := req.opts.Predicate.Describe()
	if labels != "" {
		text += " labels " + labels
	}
	if fields != "" {
		text += " fields " + fields
	}
	return text
}

// startWatch chooses where the watch begins and registers it, as one step: the watchCache's
// lock is held for reading all the while, so no event can be appended in between. An event is
// either in the interval, or it is appended later, and is then dispatched to a watcher that is
// registered. Events that were appended before and are still on their way through incoming come
// both ways; the watcher drops what its interval contained.
//
// The watchCache's lock is the outer one here, Cacher.mu the inner one. Nothing takes them the
// other way round: the dispatcher uses no cache while it holds Cacher.mu.
func (c *Cacher) startWatch(ctx context.Context, req *watchRequest) watch.Interface {
	registered := false
	err := c.watchCache.BeginWatch(req.requiredRV, req.key, req.opts,
		func(interval *watchcache.Interval, current uint64) {
			if req.opts.IsInitialEventsEndBookmarkRequired() {
				interval.EndBookmark = c.newBookmark(current)
			}
			registered = c.register(ctx, req, interval, bookmarkAfter(req, current))
		})
	switch {
	case err != nil:
		return newErrWatcher(err, c.probe)
	case !registered:
		return newImmediateCloseWatcher()
	}
	return req.watcher
}

// bookmarkAfter returns the version that the bookmark at the end of the initial events must have reached, 0 if the
// client wants no such bookmark.
func bookmarkAfter(req *watchRequest, current uint64) uint64 {
	switch {
	case !req.opts.IsInitialEventsEndBookmarkRequired():
		return 0
	case req.opts.ResourceVersion == "":
		return req.requiredRV
	case req.requestedRV == 0:
		return current
	}
	return req.requestedRV
}

// register adds the watcher and starts its goroutine, unless the cache has begun another
// generation since the request came: then all watchers have been ended, and one that slipped in
// after that could begin at a version that the new generation has not reached. The caller holds
// the watchCache's lock for reading; register takes and releases c.mu.
func (c *Cacher) register(
	ctx context.Context, req *watchRequest, interval *watchcache.Interval, bookmarkAfter uint64,
) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	generation, _, err := c.ready.check()
	if err != nil || generation != req.generation {
		return false
	}
	c.watcherIdx++
	id := "w" + strconv.Itoa(c.watcherIdx)
	req.watcher.RegisterLocked(cachewatcher.Registration{
		ID: id, Probe: c.config.Probe.Lane(id, req.watcher.Lengths), Forgetter: req,
		Interval: interval, ResourceVersion: req.requiredRV,
		BookmarkAfterResourceVersion: bookmarkAfter, InitEvents: &c.nInit,
	})
	c.watchers.addLocked(req)
	req.watcher.Probe().Texts(probe.WatcherAdded, describe(req), req.key, interval.ResourceVersion,
		cap(req.watcher.ResultChan()))
	if req.opts.Predicate.AllowWatchBookmarks {
		c.bookmarkWatchers.AddLocked(req.watcher)
	}
	// It is started under the lock, and only while ready: Cacher.Run relies on that.
	c.watcherRoutines.Go(ctx, "cacheWatcher.processInterval", req.watcher.ProcessInterval)
	return true
}

// Forget unregisters the watcher and stops it, at the end of the dispatch if one is under way. The watcher's client,
// the dispatcher and the Cacher's end may call it, in any order and more than once.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: forgetWatcher
func (req *watchRequest) Forget(drain bool) {
	c := req.cacher
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers.deleteLocked(req)
	c.stopWatcherLocked(req.watcher, drain)
}

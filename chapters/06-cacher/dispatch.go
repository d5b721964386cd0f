package cacher

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	watchcache "listwatch/chapters/04-watchcache"
	cachewatcher "listwatch/chapters/05-cachewatcher"
	"listwatch/internal/observe/probe"
)

// dispatchEvent hands one event to every watcher it concerns. Watchers that are to be stopped in the meantime are
// stopped at the end: stopping closes input, and a send on a closed channel panics.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).dispatchEvent
// Differs: a bookmark that concerns no watcher is not dispatched at all.
func (c *Cacher) dispatchEvent(event *watchcache.Event) {
	if !c.startDispatching(event) {
		return
	}
	if event.Type != watch.Bookmark {
		// For one watcher, too: the wrapping copies nothing, so fewer watchers are not worth a case of their own.
		event = cachewatcher.ShareEncodings(event)
	}
	switch {
	case event.Type == watch.Bookmark:
		c.offer(event) // a watcher without room gets none: the next bookmark makes up for it
	case c.config.Dispatch == Sequential: // as in 1.10, to compare
		c.dispatchSequentially(event)
	default:
		c.dispatchInTwoPhases(event)
	}
	c.finishDispatching(event)
}

// dispatchInTwoPhases serves the fast watchers first, and then the others, which share whatever
// time is left. Only the slow watchers and the next event wait for a slow watcher.
func (c *Cacher) dispatchInTwoPhases(event *watchcache.Event) {
	c.offer(event)
	if len(c.blockedWatchers) > 0 {
		c.waitForBlocked(event, c.blockedWatchers)
	}
}

// dispatchSequentially is the dispatch until 2018: a watcher that happens to come after a slow one waits with it.
//
// Differs: 1.10 held the Cacher's lock all the while, so that no watch could begin or end a watch either.
func (c *Cacher) dispatchSequentially(event *watchcache.Event) {
	for i, watcher := range c.watchersBuffer {
		if !watcher.NonblockingAdd(event) {
			c.waitForBlocked(event, c.watchersBuffer[i:i+1])
		}
	}
}

// offer gives event to every watcher that has room and remembers the others. No lock is held:
// nothing is closed while dispatching is set, and the buffer belongs to this goroutine.
func (c *Cacher) offer(event *watchcache.Event) {
	c.blockedWatchers = c.blockedWatchers[:0]
	for _, watcher := range c.watchersBuffer {
		if !watcher.NonblockingAdd(event) {
			c.blockedWatchers = append(c.blockedWatchers, watcher)
		}
	}
}

// waitForBlocked waits for each of the blocked watchers in turn, all of them together no longer
// than the budget. Once the budget is used up, a watcher that is still full is closed; a client
// that was merely busy comes back, and finds the missed events in the ring.
func (c *Cacher) waitForBlocked(event *watchcache.Event, blocked []*cachewatcher.CacheWatcher) {
	timeout := c.budget.takeAvailable()
	c.probe.At(probe.DispatchBlocked, event.Key, event.ResourceVersion, len(blocked), int(timeout/time.Millisecond))
	start := c.clock.Now()
	timer := c.clock.NewTimer(timeout)
	defer timer.Stop()
	expired := timer.C()
	for _, watcher := range blocked {
		if !watcher.Add(event, expired) {
			// The timer fires once, and this watcher has seen it. With nil, Add does not wait.
			expired = nil
			c.nTerminated.Add(1)
		}
	}
	c.budget.returnUnused(timeout - c.clock.Since(start))
}

// startDispatching picks the watchers that event concerns, and from here to [Cacher.finishDispatching] keeps every
// input open. It returns false if there is nothing to dispatch.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).startDispatching
func (c *Cacher) startDispatching(event *watchcache.Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchersBuffer = c.watchersBuffer[:0]
	if event.Type == watch.Bookmark {
		c.pickBookmarkWatchersLocked()
		if len(c.watchersBuffer) == 0 {
			return false
		}
	} else {
		c.pickWatchersLocked(event)
	}
	c.dispatching = true
	c.probe.Event(probe.DispatchStarted, string(event.Type), event.Key, event.ResourceVersion, len(c.watchersBuffer))
	return true
}

// pickWatchersLocked collects the watchers whose scope contains the object, and those that wait
// for a value the trigger field has, or had. Both maps are looked up, never scanned: a thousand
// watchers of single nodes cost nothing for an event that concerns one of them.
func (c *Cacher) pickWatchersLocked(event *watchcache.Event) {
	object := scopeOf(&c.config, event.Key)
	scopes := []namespacedName{
		object,                        // watchers of this one object
		{namespace: object.namespace}, // everything in its namespace
		{name: object.name},           // everything with its name
		{},                            // the whole resource
	}
	for i, scope := range scopes {
		if slices.Contains(scopes[:i], scope) {
			// An object without a namespace: its watchers would be sent the event twice.
			continue
		}
		c.watchersBuffer = append(c.watchersBuffer, c.watchers.allWatchers[scope]...)
	}
	if c.config.Trigger != nil {
		c.pickTriggerLocked(event)
	}
}

// pickTriggerLocked looks up two values: a pod that leaves a node concerns the watcher of the old node, too.
func (c *Cacher) pickTriggerLocked(event *watchcache.Event) {
	value := c.config.Trigger.ValueOf(event.Object)
	c.watchersBuffer = append(c.watchersBuffer, c.watchers.valueWatchers[value]...)
	if event.PrevObject == nil {
		return
	}
	if previous := c.config.Trigger.ValueOf(event.PrevObject); previous != value {
		c.watchersBuffer = append(c.watchersBuffer, c.watchers.valueWatchers[previous]...)
	}
}

// pickBookmarkWatchersLocked collects the watchers whose time has come, except those that have been stopped.
func (c *Cacher) pickBookmarkWatchersLocked() {
	for _, watcher := range c.bookmarkWatchers.PopExpiredLocked() {
		if watcher.StoppedLocked() {
			continue
		}
		c.watchersBuffer = append(c.watchersBuffer, watcher)
		c.expiredBookmarkWatchers = append(c.expiredBookmarkWatchers, watcher)
	}
}

// finishDispatching stops the watchers whose stop had to wait, and gives watchers that were
// sent a bookmark their next turn.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).finishDispatching
func (c *Cacher) finishDispatching(event *watchcache.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dispatching = false
	for _, watcher := range c.watchersToStop {
		watcher.StopLocked()
	}
	for _, watcher := range c.expiredBookmarkWatchers {
		if !watcher.StoppedLocked() {
			c.bookmarkWatchers.AddLocked(watcher)
		}
	}
	c.watchersToStop = emptied(c.watchersToStop)
	c.expiredBookmarkWatchers = emptied(c.expiredBookmarkWatchers)
	c.watchersBuffer = emptied(c.watchersBuffer)
	c.blockedWatchers = emptied(c.blockedWatchers)
	c.probe.Event(probe.DispatchFinished, string(event.Type), event.Key, event.ResourceVersion)
}

// emptied returns watchers without its elements, ready for reuse. They are cleared, so that the array does not keep
// watchers alive that have ended.
func emptied(watchers []*cachewatcher.CacheWatcher) []*cachewatcher.CacheWatcher {
	clear(watchers)
	return watchers[:0]
}

// stopWatcherLocked stops watcher, now or at the end of the dispatch that is under way. drain
// says whether events already in its channels should still be delivered.
func (c *Cacher) stopWatcherLocked(watcher *cachewatcher.CacheWatcher, drain bool) {
	watcher.SetDrainLocked(drain)
	if c.dispatching {
		c.watchersToStop = append(c.watchersToStop, watcher)
		return
	}
	watcher.StopLocked()
}

// terminateAllWatchers ends every watch. Nothing is sent: the streams simply end.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).terminateAllWatchers
func (c *Cacher) terminateAllWatchers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, watcher := range c.watchers.takeAllLocked() {
		c.stopWatcherLocked(watcher, false)
	}
}

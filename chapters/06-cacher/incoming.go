package cacher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/observe/probe"
)

// processEvent is called by the watchCache after every change and every bookmark, on the reflector's goroutine, with no
// lock held. It blocks while incoming has a hundred events; meanwhile the cache, which is ahead of its watchers, still
// serves lists and new watches, and nothing more is read from the storage.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).processEvent
func (c *Cacher) processEvent(event *watchcache.Event) {
	select {
	case c.incoming <- event:
	default:
		c.probe.Event(probe.IncomingBlocked, string(event.Type), event.Key, event.ResourceVersion)
		c.incoming <- event
	}
	c.probe.Event(probe.IncomingSent, string(event.Type), event.Key, event.ResourceVersion, len(c.incoming),
		cap(c.incoming))
}

// forgetProcessed lets the dispatcher take the last events of a generation, and then forget the
// version that it has reached. The next generation may begin at a lower version, if etcd was
// restored, and its bookmarks must not promise the versions of the last generation. It is
// called on the goroutine that sends to incoming, and returns when no event is on its way.
//
// Differs: upstream goes on from the old version until an event or a progress notification comes.
func (c *Cacher) forgetProcessed() {
	c.incoming <- nil
	<-c.forgotten
}

// dispatchEvents is the one goroutine through which every event of the resource passes. It runs
// until incoming is closed, and never stops receiving before: the sender must not be left
// blocked.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).dispatchEvents
// Differs: does not poll for the first list before it begins; a bookmark takes the list's
// version until there is a newer one.
func (c *Cacher) dispatchEvents(context.Context) {
	bookmarkTimer := c.clock.NewTimer(bookmarkTick())
	defer bookmarkTimer.Stop()
	for {
		select {
		case event, ok := <-c.incoming:
			if !ok {
				return
			}
			c.receive(event)
		case <-bookmarkTimer.C():
			bookmarkTimer.Reset(bookmarkTick())
			c.dispatchBookmark()
		}
	}
}

// The time from one look for watchers that are due a bookmark to the next is in
// [bookmarkTickMin, bookmarkTickMin+bookmarkTickSpread).
const (
	bookmarkTickMin    = time.Second            // upstream's
	bookmarkTickSpread = 250 * time.Millisecond // upstream's: so that the resources do not all tick together
)

func bookmarkTick() time.Duration { return bookmarkTickMin + rand.N(bookmarkTickSpread) }

// receive takes one event from incoming to all its watchers. Bookmarks of the storage are not
// dispatched: they can come many times a second, and the dispatcher's own bookmarks carry the
// same versions.
func (c *Cacher) receive(event *watchcache.Event) {
	if event == nil { // forgetProcessed's
		c.lastProcessedResourceVersion.Store(0)
		c.forgotten <- struct{}{}
		return
	}
	c.probe.Event(probe.IncomingReceived, string(event.Type), event.Key, event.ResourceVersion, len(c.incoming),
		cap(c.incoming))
	if event.Type != watch.Bookmark {
		c.dispatchEvent(event)
	}
	// After the dispatch, not before: the next bookmark carries this version, and promises that
	// everything up to it has been handed over. Bookmarks are made by this goroutine too, so
	// none can come in between.
	c.lastProcessedResourceVersion.Store(event.ResourceVersion)
	c.nDispatched.Add(1)
}

func (c *Cacher) dispatchBookmark() {
	// The list's version counts as processed: the list's objects reach a watcher through its
	// interval, and watchers of an older list are gone.
	rv := max(c.lastProcessedResourceVersion.Load(), c.watchCache.ListResourceVersion())
	if rv == 0 {
		return // nothing has been listed yet, so there are no watchers
	}
	c.dispatchEvent(c.newBookmark(rv))
}

// newBookmark returns an event that carries only rv, in an otherwise empty object.
func (c *Cacher) newBookmark(rv uint64) *watchcache.Event {
	obj := c.config.NewFunc()
	if err := c.versioner.UpdateObject(obj, rv); err != nil {
		panic(fmt.Sprintf("cacher: stamp a bookmark with %d: %v", rv, err))
	}
	return &watchcache.Event{Type: watch.Bookmark, Object: obj, ResourceVersion: rv}
}

package watchcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// Config describes a [WatchCache].
type Config struct {
	// KeyFunc returns the storage key of an object: "/registry/pods/default/a".
	KeyFunc func(obj any) (string, error)
	// GetAttrs returns what selectors may see of an object.
	GetAttrs storage.AttrFunc
	// Trigger is the field by which the store files its elements, too; nil: by none.
	Trigger *storage.Trigger

	// EventHandler is called with every event and with every bookmark, in order, by the goroutine that writes into the
	// cache, after the change and with no lock held. It may block: that is the backpressure on the storage.
	EventHandler func(event *Event)
	// OnReplace is called after every Replace, still under the lock, so that no reader can see the new state before it
	// has returned. It must not block and must not call back. May be nil.
	OnReplace func(rv uint64)

	// RequestWatchProgress asks the storage to say how far it is; the answer comes as a bookmark.
	RequestWatchProgress func(ctx context.Context) error
	// GetCurrentResourceVersion returns the storage's newest version, by a read that cannot be stale.
	GetCurrentResourceVersion func(ctx context.Context) (uint64, error)

	// ReadWait gets, in seconds, how long each reader waited that named a version, under the lock. May be nil.
	ReadWait prometheus.Observer

	Clock clock.WithTicker
	// Patience is the clock by which readers wait; nil: Clock. It is another one where Clock can be stopped, and a
	// reader that asks from outside must get an answer all the same.
	Patience clock.WithTicker
	Probe    *probe.Probe
	// RingCapacity fixes the capacity of the ring; 0 lets it move between its bounds.
	RingCapacity int
}

// WatchCache is one resource in memory: its current objects, its recent history, and how far both are.
//
// To the reflector it is a store with Add, Update, Delete and Replace. To the Cacher it is a place that answers
// reads ([WatchCache.GetList], [WatchCache.Get]) and knows where a watch begins ([WatchCache.BeginWatch]).
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: watchCache
// Differs: snapshots are always on: there is no consistency checker to turn them off.
type WatchCache struct {
	// Set by New, never changed.
	config    Config
	versioner storage.APIObjectVersioner
	progress  *ConditionalProgressRequester
	wakeups   *ConditionalProgressRequester

	received atomic.Int64 // events since New, bookmarks not counted

	mu              sync.RWMutex // guards the fields below and what they point to; the first lock of the server half
	cond            *sync.Cond   // on mu's read side: resourceVersion has grown, or it is time to look at the clock
	resourceVersion uint64       // every event up to this one is in history and store
	listVersion     uint64       // resource version of the last Replace, 0 before the first
	history         *history
	store           *store
	snapshots       snapshotter
	stopped         bool // nothing will ever come: no reader may wait
}

// New returns an empty cache. It starts nothing.
func New(config Config) *WatchCache {
	if config.Patience == nil {
		config.Patience = config.Clock
	}
	w := &WatchCache{
		config:  config,
		history: newHistory(config.RingCapacity, config.Probe),
		store:   newStore(config.Trigger),
	}
	// Waiters only read, and many of them wait at once: cond.Wait gives back a read lock, not the write lock.
	w.cond = sync.NewCond(w.mu.RLocker())
	w.progress = NewConditionalProgressRequester(config.Patience, config.RequestWatchProgress)
	w.wakeups = NewConditionalProgressRequester(config.Patience, w.wakeReaders)
	return w
}

// Run serves waiting readers until ctx is done, and returns when both of its goroutines have ended. Readers that wait
// then, or later, are refused. A reader that waits before Run waits until the version arrives, however long that takes.
func (w *WatchCache) Run(ctx context.Context) {
	var routines routine.Group
	routines.Go(ctx, "watchCache.requestProgress", w.progress.Run)
	routines.Go(ctx, "watchCache.wakeReaders", w.wakeups.Run)
	routines.Wait()
	w.stop()
}

func (w *WatchCache) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.cond.Broadcast()
}

// Add takes a created object, which belongs to the cache from then on. Add, Update and Delete block while the handler
// does, and fail for what is not an object with a key and a resource version; with 410 for an object that is older than
// the newest event. An event that fails changes nothing.
func (w *WatchCache) Add(obj any) error { return w.processEvent(watch.Added, obj) }

// Update takes the new state of an object, as Add does.
func (w *WatchCache) Update(obj any) error { return w.processEvent(watch.Modified, obj) }

// Delete takes the last state of an object, stamped with the resource version of its deletion.
func (w *WatchCache) Delete(obj any) error { return w.processEvent(watch.Deleted, obj) }

// Resync does nothing: there is no handler to remind.
func (w *WatchCache) Resync() error { return nil }

// UpdateResourceVersion takes a bookmark: everything up to resourceVersion has been delivered. The handler hears of it
// if the cache had not got so far. The reflector also calls it after every event, and then there is nothing to say: the
// event itself has brought the version.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).UpdateResourceVersion
// Differs: upstream's handler is sent a bookmark after every event, too, which repeats the event's version. Upstream's
// version goes back with a bookmark that is older, as a restored etcd may send; ours never goes back without a list.
func (w *WatchCache) UpdateResourceVersion(resourceVersion string) {
	rv, err := w.versioner.ParseResourceVersion(resourceVersion)
	if err != nil {
		return // the storage is ours and sends numbers; no harm comes of a missing bookmark
	}
	if !w.advance(rv) { // takes and releases w.mu
		return
	}
	w.config.EventHandler(&Event{Type: watch.Bookmark, ResourceVersion: rv})
}

// advance reports whether rv is newer than what the cache had reached.
func (w *WatchCache) advance(rv uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rv <= w.resourceVersion {
		return false
	}
	w.resourceVersion = rv
	w.config.Probe.At(probe.RVAdvanced, "", rv)
	w.cond.Broadcast()
	return true
}

// Replace takes a whole list and forgets everything before it: ring, store and snapshots. An open interval into the
// old ring ends as overtaken. OnReplace is called, and every waiting reader wakes. No events come of it: all watchers
// have been stopped, and their clients watch again.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).Replace
func (w *WatchCache) Replace(list []any, resourceVersion string) error {
	rv, err := w.versioner.ParseResourceVersion(resourceVersion)
	if err != nil {
		return err
	}
	elements := make([]*Element, 0, len(list))
	for _, item := range list {
		obj, ok := item.(runtime.Object)
		if !ok {
			return fmt.Errorf("replace the cache: %T is not an object", item)
		}
		element, err := w.newElement(obj)
		if err != nil {
			return fmt.Errorf("replace the cache: %w", err)
		}
		elements = append(elements, element)
	}
	w.replace(elements, rv) // takes and releases w.mu
	return nil
}

func (w *WatchCache) replace(elements []*Element, rv uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.cond.Broadcast()
	w.history.resetLocked()
	w.store.replaceLocked(elements)
	w.snapshots.resetLocked()
	w.snapshots.addLocked(rv, w.store.state)
	w.listVersion = rv
	w.resourceVersion = rv
	w.config.Probe.At(probe.CacheReplaced, "", rv, w.history.startIndex, w.history.endIndex, len(w.history.cache),
		len(elements))
	if w.config.OnReplace != nil {
		// Ready is declared before the lock is released: a reader that finds the cache ready finds this list in it.
		w.config.OnReplace(rv)
	}
}

// Compact notes that the storage has forgotten what is older than rv. The cache forgets its snapshots of it: an exact
// list at such a version gets the same 410 Expired as from the storage. The ring is not affected, a watch may still
// begin in it.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/watch_cache_storage.go: (*WatchCacheStorage).Compact
// Differs: the state that the storage has at rv itself stays readable.
func (w *WatchCache) Compact(rv uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.snapshots.compactLocked(rv)
}

// RingCapacity returns how many events the ring holds at most, for now, and at which capacity it is fixed; 0: at none.
func (w *WatchCache) RingCapacity() (now, fixed int) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.history.lowerBound == w.history.upperBound {
		fixed = w.history.upperBound
	}
	return len(w.history.cache), fixed
}

// SetRingCapacity gives the ring a capacity that it keeps, whatever happens; a smaller ring drops the oldest events. 0
// lets the capacity move again.
//
// Differs: upstream's ring has no knob; people wait for hours until one has shrunk.
func (w *WatchCache) SetRingCapacity(fixed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.boundLocked(fixed)
	w.history.setCapacityLocked(min(max(len(w.history.cache), w.history.lowerBound), w.history.upperBound),
		"a knob was turned")
}

func (w *WatchCache) newElement(obj runtime.Object) (*Element, error) {
	key, err := w.config.KeyFunc(obj)
	if err != nil {
		return nil, fmt.Errorf("compute the key of %T: %w", obj, err)
	}
	labels, fields, err := w.config.GetAttrs(obj)
	if err != nil {
		return nil, fmt.Errorf("read the attributes of %s: %w", key, err)
	}
	return &Element{Key: key, Object: obj, Labels: labels, Fields: fields}, nil
}

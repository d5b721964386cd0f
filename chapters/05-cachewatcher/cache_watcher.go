package cachewatcher

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/observe/probe"
)

// Config is what is known of a watcher before it is registered.
type Config struct {
	// ChanSize is the capacity of both channels: see [watchcache.WatchCache.SuggestedWatchChannelSize].
	ChanSize int
	Filter   Filter
	// Deadline is when the server will end the watch; zero if it will not. A last bookmark is sent shortly before.
	Deadline time.Time
	// Text describes the watch to a person.
	Text string
}

// Registration is what becomes known when the watcher is registered, under the Cacher's lock.
type Registration struct {
	ID    string       // "w3"
	Probe *probe.Probe // speaks for the watcher

	// Forgetter takes the watcher out of the Cacher's books and stops it.
	Forgetter Forgetter
	// Interval is what the watcher is sent first.
	Interval *watchcache.Interval
	// ResourceVersion is the version the client asked to begin after, 0 if it named none.
	ResourceVersion uint64
	// BookmarkAfterResourceVersion is the version that the bookmark must have reached which ends the initial events.
	// 0 means that no such bookmark was asked for.
	BookmarkAfterResourceVersion uint64
	// InitEvents counts the events of all watchers' intervals; nil: not counted.
	InitEvents *atomic.Int64
}

// Forgetter takes a watcher out of its owner's books and stops it, at once or as soon as no dispatch can be sending to
// it. drain says that what the watcher has been given already should still be delivered. Forget takes the owner's lock,
// and may be called any number of times.
type Forgetter interface {
	Forget(drain bool)
}

// CacheWatcher is one watch, from the Cacher to its client.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: cacheWatcher
// Differs: the objects of an interval are shared with the cache, as [storage.Interface] allows,
// but for that of a DELETED which only stopped matching; upstream copies them all for each
// watcher. The bookmark state is an atomic instead of a mutex.
type CacheWatcher struct {
	// Set by New, never changed.
	filter    Filter
	versioner storage.APIObjectVersioner
	deadline  time.Time
	text      string

	// Set by Register, under the Cacher's lock, before any other goroutine knows the watcher;
	// never changed after.
	id                           string
	probe                        *probe.Probe
	forgetter                    Forgetter
	bookmarkAfterResourceVersion uint64
	initEvents                   *atomic.Int64

	// Sent by Cacher.dispatchEvents, closed by StopLocked; holds about a second of events.
	input  chan *watchcache.Event
	result chan watch.Event // sent and closed by processInterval; as large as input
	// Never sent to; closed by StopLocked: whatever is still queued is not wanted.
	done chan struct{}

	// Guarded by the Cacher's lock.
	stopped         bool // input is closed
	doneClosed      bool
	dropInputBuffer bool // what is in input is not wanted; once set, it stays

	state atomic.Int32 // a bookmarkState; moved by dispatcher and watcher

	// Owned by the watcher's goroutine.
	interval *watchcache.Interval
	floor    uint64 // everything up to this version has been sent or was not asked for
}

var (
	_ watch.Interface = (*CacheWatcher)(nil)
	_ probe.Probed    = (*CacheWatcher)(nil)
)

// New returns a watcher that is not registered yet. It allocates the channels, which is why it is called before any
// lock is taken.
func New(config Config) *CacheWatcher {
	return &CacheWatcher{
		filter:   config.Filter,
		deadline: config.Deadline,
		text:     config.Text,
		input:    make(chan *watchcache.Event, config.ChanSize),
		result:   make(chan watch.Event, config.ChanSize),
		done:     make(chan struct{}),
	}
}

// RegisterLocked completes the watcher. The caller holds the Cacher's lock, and starts [CacheWatcher.ProcessInterval].
func (w *CacheWatcher) RegisterLocked(r Registration) {
	w.id = r.ID
	w.probe = r.Probe
	w.forgetter = r.Forgetter
	w.initEvents = r.InitEvents
	w.interval = r.Interval
	// The interval may begin later than asked for ("not older than"): what is older than it must not follow it.
	w.floor = max(r.ResourceVersion, r.Interval.ResourceVersion)
	w.setBookmarkAfter(r.BookmarkAfterResourceVersion)
}

// ProcessInterval is the watcher's goroutine: it sends what came before the watch, then what
// comes. It ends when the watcher is stopped, when ctx ends, or when the ring has overtaken the
// interval; then result is closed. In the last case no error is sent: the client asks again
// from the version it has reached, and learns then whether that is too old.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).processInterval
// Differs: the end of ctx is a Stop, instead of one more case in every select.
func (w *CacheWatcher) ProcessInterval(ctx context.Context) {
	defer w.closeResult()
	defer w.Stop()
	defer context.AfterFunc(ctx, w.Stop)()

	if w.sendInterval() {
		w.process()
	}
}

func (w *CacheWatcher) closeResult() {
	close(w.result)
	w.probe.At(probe.WatcherRemoved, "", w.floor)
}

// sendInterval sends the interval and its end bookmark. It reports whether live events may
// follow. While it runs no goroutine takes from input, so a client that is slow with its
// initial events can lose its watch before it has begun.
func (w *CacheWatcher) sendInterval() bool {
	sent := 0
	for {
		event, err := w.interval.Next()
		if err != nil {
			return false
		}
		if event == nil {
			break
		}
		if !w.sendWatchCacheEvent(event) {
			return false
		}
		// Events of the interval may be waiting in input as well: the watcher was registered
		// while they were on their way to the dispatcher. Raising the floor keeps them from
		// being sent twice.
		w.floor = max(w.floor, event.ResourceVersion)
		sent++
	}
	if w.initEvents != nil {
		w.initEvents.Add(int64(sent))
	}
	if bookmark := w.interval.EndBookmark; bookmark != nil && !w.sendWatchCacheEvent(bookmark) {
		return false
	}
	w.interval = nil // a snapshot may hang on it
	w.probe.At(probe.WatcherInterval, "", w.floor, sent)
	return true
}

// process sends what the dispatcher brings, until input is closed or nothing more is wanted.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).process
func (w *CacheWatcher) process() {
	for {
		event, ok := <-w.input
		if !ok {
			return
		}
		w.probe.Event(probe.InputReceived, string(event.Type), event.Key, event.ResourceVersion, len(w.input),
			cap(w.input))
		if w.isDue(event) && !w.sendWatchCacheEvent(event) {
			return
		}
	}
}

// isDue reports whether event comes after what the watcher has sent. The floor stays where the
// interval left it: there is one dispatcher, so what comes through input is in order. The one
// exception is the bookmark that ends the initial events: it may carry just the version that
// they had.
func (w *CacheWatcher) isDue(event *watchcache.Event) bool {
	if event.ResourceVersion > w.floor {
		return true
	}
	isEnd := event.Type == watch.Bookmark && w.bookmarkState() != bookmarkSent
	return isEnd && event.ResourceVersion == w.floor
}

// sendWatchCacheEvent filters, converts and sends one event. It never writes to event, which
// is shared. It returns false if the watcher was stopped before there was room; the caller then
// sends nothing more.
//
// What that keeps true: when an event enters result, every earlier one that the client wants is
// there already. A client that resumes from the last version it saw has therefore missed
// nothing, however the watch has ended. Were an event left out and a later one sent, the client
// would never ask for the one between them. While there is room, a stop goes unnoticed, which
// does no harm: the event is the next one.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: (*cacheWatcher).sendWatchCacheEvent
// Differs: a stopped watcher ends when it finds no room; upstream's goes through the rest of
// its input, and sends at most one event of it.
func (w *CacheWatcher) sendWatchCacheEvent(event *watchcache.Event) bool {
	out, wanted := w.convertToWatchEvent(event)
	if !wanted {
		w.probe.At(probe.WatcherFiltered, event.Key, event.ResourceVersion)
		return true
	}
	if !w.sendResult(event, out) {
		return false
	}
	w.probe.Event(probe.ResultSent, string(out.Type), event.Key, event.ResourceVersion, len(w.result), cap(w.result))
	w.markBookmarkSent(event)
	return true
}

// sendResult sends out, or returns false when the watcher is stopped before there is room.
func (w *CacheWatcher) sendResult(event *watchcache.Event, out watch.Event) bool {
	select {
	case w.result <- out:
		return true
	default:
	}
	w.probe.Event(probe.ResultBlocked, string(out.Type), event.Key, event.ResourceVersion)
	select {
	case <-w.done:
		return false
	case w.result <- out:
		return true
	}
}

// ResultChan returns the channel of what the client sees. It is closed when the watch is over.
func (w *CacheWatcher) ResultChan() <-chan watch.Event { return w.result }

// Lengths returns how much is in both channels, and the capacity of each.
func (w *CacheWatcher) Lengths() (input, result, capacity int) {
	return len(w.input), len(w.result), cap(w.input)
}

// Probe returns the probe that speaks for the watcher, so that the server which reads ResultChan can report on its
// behalf.
func (w *CacheWatcher) Probe() *probe.Probe { return w.probe }

package watchcache

import (
	"errors"
	"sync"
)

// intervalBufferSize is how many events a cursor copies at once: the lock is taken once per batch, not per event.
const intervalBufferSize = 100

// ErrIntervalOvertaken is what a cursor answers when the ring has dropped events that it had not read yet.
var ErrIntervalOvertaken = errors.New("cache interval invalidated: the ring has moved past it")

// Interval is what a watcher is to be sent before its live events begin: either a part of the ring, or the state as it
// is, one ADDED per object in key order. It is read by one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_interval.go: watchCacheInterval
// Differs: one buffer for both kinds; the state is expanded in batches and only below the watched key, where upstream
// expands the whole resource.
type Interval struct {
	// Set by who makes it, never changed.
	source intervalSource
	// ResourceVersion is the version the interval leads up to the events after: what a watcher is owed are the
	// interval's events and then every event newer than both this and the newest of them.
	ResourceVersion uint64
	// EndBookmark, if not nil, is sent after the last event: the initial state is complete.
	EndBookmark *Event

	// Owned by the goroutine that calls Next.
	buffer []*Event
	next   int
}

// intervalSource hands out events in batches.
type intervalSource interface {
	// fill appends the next events to batch, which is empty, up to its capacity, and returns it. An empty batch means
	// that there are no more.
	fill(batch []*Event) ([]*Event, error)
}

// Next returns the next event, nil if there are no more, or [ErrIntervalOvertaken].
func (i *Interval) Next() (*Event, error) {
	if i.next == len(i.buffer) {
		if err := i.refill(); err != nil {
			return nil, err
		}
		if len(i.buffer) == 0 {
			return nil, nil
		}
	}
	event := i.buffer[i.next]
	i.buffer[i.next] = nil // so that an event that leaves the ring is not kept alive by a watcher that has read it
	i.next++
	return event, nil
}

func (i *Interval) refill() error {
	if i.buffer == nil {
		i.buffer = make([]*Event, 0, intervalBufferSize)
	}
	var err error
	i.buffer, err = i.source.fill(i.buffer[:0])
	i.next = 0
	return err
}

// historySource reads positions [startIndex, endIndex) of the ring, a batch at a time. It holds
// no lock in between: if the ring drops an event before it was copied, the next batch fails.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_interval.go: historyCacheIntervalSource
type historySource struct {
	// Set by history.intervalLocked, never changed.
	history  *history
	locker   sync.Locker // takes WatchCache.mu for reading
	endIndex int

	// Owned by the goroutine that reads the interval.
	startIndex int
}

func (s *historySource) fill(batch []*Event) ([]*Event, error) {
	if s.startIndex == s.endIndex {
		return batch, nil
	}
	s.locker.Lock()
	defer s.locker.Unlock()
	// Positions are absolute and startIndex of the ring never goes back: an event is there if, and only if, its
	// position has not been passed, whatever size the ring has taken since.
	if s.startIndex < s.history.startIndex {
		return batch[:0], ErrIntervalOvertaken
	}
	for s.startIndex < s.endIndex && len(batch) < cap(batch) {
		batch = append(batch, s.history.cache[s.startIndex%len(s.history.cache)])
		s.startIndex++
	}
	return batch, nil
}

// storeSource reads one state of the store. The state cannot change, so no lock is needed.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_interval.go: lazySnapshotCacheIntervalSource
type storeSource struct {
	// Set by WatchCache.stateIntervalLocked, never changed.
	state           btreeStore
	prefix          string
	resourceVersion uint64

	// Owned by the goroutine that reads the interval.
	from string // the first key that has not been read
}

func (s *storeSource) fill(batch []*Event) ([]*Event, error) {
	for element := range s.state.orderedListPrefix(s.prefix, s.from) {
		if len(batch) == cap(batch) {
			break
		}
		batch = append(batch, element.added(s.resourceVersion))
		s.from = element.Key + "\x00" // the smallest key after this one
	}
	return batch, nil
}

package watchcache

import (
	"fmt"
	"math"
	"sort"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/observe/probe"
)

const (
	// BookmarkFrequency is how often a watcher is sent a bookmark. It is here because it decides the next number.
	BookmarkFrequency = time.Minute

	// EventFreshDuration is how far back the ring should reach: a bookmark's distance and a little more, so that a
	// client which reconnects with the version of its last bookmark still finds the ring there.
	EventFreshDuration = BookmarkFrequency + 15*time.Second

	// InitialCapacity is that of a ring whose capacity is not fixed.
	InitialCapacity = lowerBoundCapacity

	// MaxRingCapacity is the largest there is.
	MaxRingCapacity = upperBoundCapacity

	lowerBoundCapacity = 100        // upstream's default: about 100 pointers, whatever the resource
	upperBoundCapacity = 100 * 1024 // upstream's default: lowerBoundCapacity doubled ten times
)

// history is the ring: the newest events, in order of their resource versions.
//
// Positions are absolute: endIndex counts every event ever appended, startIndex every event
// ever dropped, and only the slot in cache is taken modulo the capacity. A position therefore
// means the same event in a ring of any size, which is why an [Interval] that is being read
// survives when the ring grows.
//
//	positions  … 3  4 │ 5  6  7  8 │ 9 …        capacity 4, startIndex 5, endIndex 9
//	slots             │ 1  2  3  0 │            position 8 lies in slot 0
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go: watchCacheHistory
// Differs: the history window is constant, so the upper bound is too. A capacity can be fixed
// for demonstrations.
type history struct {
	probe *probe.Probe // set by newHistory, never changed

	// Guarded by WatchCache.mu.
	lowerBound, upperBound  int      // of the capacity; equal: it is fixed
	cache                   []*Event // its length is the capacity
	startIndex, endIndex    int      // the ring holds [startIndex, endIndex)
	removedEventSinceRelist bool     // whether anything after the last list was dropped already
	increases, decreases    int      // of the capacity
}

// newHistory returns an empty ring. A fixed capacity above 0 is kept whatever happens.
func newHistory(fixed int, p *probe.Probe) *history {
	h := &history{probe: p}
	h.boundLocked(fixed) // no lock is needed yet: the ring is not shared
	h.cache = make([]*Event, h.lowerBound)
	return h
}

// boundLocked fixes the capacity, or with 0 leaves it to [history.resizeLocked].
func (h *history) boundLocked(fixed int) {
	h.lowerBound, h.upperBound = lowerBoundCapacity, upperBoundCapacity
	if fixed > 0 {
		h.lowerBound, h.upperBound = fixed, fixed
	}
}

// appendLocked puts event at the end, dropping the oldest if there is no room.
// [history.checkLocked] has looked at it. The caller holds WatchCache.mu for writing.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go: (*watchCacheHistory).updateCache
func (h *history) appendLocked(event *Event) {
	h.resizeLocked(event.RecordTime)
	if h.isFullLocked() {
		h.startIndex++
		h.removedEventSinceRelist = true
	}
	h.cache[h.endIndex%len(h.cache)] = event
	// Never wraps: positions are absolute, only the slot is taken modulo the capacity.
	h.endIndex++
	h.probe.Event(probe.RingAppend, string(event.Type), event.Key, event.ResourceVersion, h.startIndex, h.endIndex,
		len(h.cache), int(h.oldestLocked()))
}

// checkLocked returns 410 Expired for an event that is older than the newest one: the search for a watch's
// starting point, and every replay, count on the order. (Changes of one etcd transaction share a version.)
//
// Differs: upstream appends any event. A storage that goes back in time makes our reflector list again.
func (h *history) checkLocked(event *Event) error {
	if h.startIndex == h.endIndex {
		return nil
	}
	newest := h.cache[(h.endIndex-1)%len(h.cache)].ResourceVersion
	if event.ResourceVersion >= newest {
		return nil
	}
	return apierrors.NewResourceExpired(fmt.Sprintf("%s of %s at %d after %d: the history is broken",
		event.Type, event.Key, event.ResourceVersion, newest))
}

func (h *history) isFullLocked() bool { return h.endIndex-h.startIndex == len(h.cache) }

// resizeLocked is called before every append and acts only when the ring is full. It doubles
// the ring if even the oldest event is younger than [EventFreshDuration]: dropping it would
// cost some client a relist. It halves the ring if the newest quarter alone reaches back that
// far. The distance between the two keeps the ring from flapping.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go: (*watchCacheHistory).resizeCacheLocked
func (h *history) resizeLocked(now time.Time) {
	if !h.isFullLocked() {
		return
	}
	capacity := len(h.cache)
	oldest := h.cache[h.startIndex%capacity]
	newestQuarter := h.cache[(h.endIndex-capacity/4)%capacity]
	switch {
	case now.Sub(oldest.RecordTime) < EventFreshDuration:
		h.setCapacityLocked(min(capacity*2, h.upperBound), "the oldest event is still fresh")
	case now.Sub(newestQuarter.RecordTime) > EventFreshDuration:
		h.setCapacityLocked(max(capacity/2, h.lowerBound), "the newest quarter would do")
	}
}

// setCapacityLocked moves every event into a ring of another size. A smaller ring keeps the newest events.
func (h *history) setCapacityLocked(capacity int, reason string) {
	if capacity == len(h.cache) {
		return
	}
	if h.endIndex-h.startIndex > capacity {
		h.startIndex = h.endIndex - capacity
		h.removedEventSinceRelist = true
	}
	cache := make([]*Event, capacity)
	for i := h.startIndex; i < h.endIndex; i++ {
		cache[i%capacity] = h.cache[i%len(h.cache)]
	}
	if capacity > len(h.cache) {
		h.increases++
	} else {
		h.decreases++
	}
	h.cache = cache
	h.probe.Text(probe.RingResize, reason, "", h.oldestLocked(), h.startIndex, h.endIndex, capacity,
		int(h.oldestLocked()))
}

// resetLocked empties the ring after a relist. startIndex does not go back, so that intervals into the old content
// find themselves overtaken instead of reading events of another age.
func (h *history) resetLocked() {
	h.startIndex = h.endIndex
	h.removedEventSinceRelist = false
	clear(h.cache)
}

// oldestLocked returns the resource version of the first event in the ring, 0 if there is none.
func (h *history) oldestLocked() uint64 {
	if h.startIndex == h.endIndex {
		return 0
	}
	return h.cache[h.startIndex%len(h.cache)].ResourceVersion
}

// intervalLocked returns a cursor over the events in (rv, newest]. listRV is the version of the
// last list, 0 if there was none. The error is 410 Expired if events in that range may be gone.
// The caller holds WatchCache.mu; locker takes it for reading and is used by the cursor later.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go: (*watchCacheHistory).GetIntervalLocked
func (h *history) intervalLocked(rv, listRV uint64, locker sync.Locker) (*Interval, error) {
	var oldest uint64
	switch {
	case listRV > 0 && !h.removedEventSinceRelist:
		// Nothing after the list is missing, and the list itself is not an event.
		oldest = listRV + 1
	case h.startIndex < h.endIndex:
		oldest = h.oldestLocked()
	default:
		return nil, fmt.Errorf("watch cache isn't correctly initialized")
	}
	if rv < oldest-1 {
		message := fmt.Sprintf("too old resource version: %d (%d)", rv, oldest-1)
		return nil, apierrors.NewResourceExpired(message)
	}
	first := sort.Search(h.endIndex-h.startIndex, func(i int) bool {
		return h.cache[(h.startIndex+i)%len(h.cache)].ResourceVersion > rv
	})
	source := &historySource{
		history: h, locker: locker, startIndex: h.startIndex + first, endIndex: h.endIndex,
	}
	return &Interval{source: source, ResourceVersion: rv}, nil
}

const (
	minWatchChanSize                        = 10   // upstream: kept for compatibility
	maxWatchChanSizeWithIndexAndTrigger     = 10   // such a watcher sees few events
	maxWatchChanSizeWithIndexWithoutTrigger = 1000 // such a watcher sees everything, of a resource known to be busy
	maxWatchChanSizeWithoutIndex            = 100
)

// suggestedWatchChannelSizeLocked estimates how many events come in a second: the ring holds those of the last
// [EventFreshDuration].
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go: (*watchCacheHistory).suggestedWatchChannelSize
func (h *history) suggestedWatchChannelSizeLocked(indexExists, triggerUsed bool) int {
	perSecond := int(math.Ceil(float64(len(h.cache)) / EventFreshDuration.Seconds()))
	limit := maxWatchChanSizeWithoutIndex
	switch {
	case indexExists && triggerUsed:
		limit = maxWatchChanSizeWithIndexAndTrigger
	case indexExists:
		limit = maxWatchChanSizeWithIndexWithoutTrigger
	}
	return min(max(perSecond, minWatchChanSize), limit)
}

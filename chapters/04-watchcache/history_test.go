package watchcache

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

func TestAWatchMayResumeExactlyAsFarBackAsTheRingReaches(t *testing.T) {
	f := newFixture(t, 4)
	f.list(10)
	f.fill(11, 20) // the ring holds 16, 17, 18, 19
	for rv, want := range map[uint64]string{
		14: "Expired", 15: "4 events", 16: "3 events", 19: "0 events", 25: "0 events",
	} {
		interval, err := f.since(rv)
		if apierrors.IsResourceExpired(err) {
			f.is(fmt.Sprint("resume from ", rv), "Expired", want)
			continue
		}
		f.must(err)
		events := f.events(interval)
		f.is(fmt.Sprint("resume from ", rv), fmt.Sprintf("%d events", len(events)), want)
	}
}

func TestTheCacheRefusesWhatIsOutOfOrderAndAsksForAList(t *testing.T) {
	f := newFixture(t, 4)
	f.list(10)
	f.fill(11, 13)
	f.must(f.Add(pod("default/same-transaction", 12, "")))
	before := f.Snapshot()
	assert.Fails(t, f.Add(pod("default/a", 11, "")), apierrors.IsResourceExpired, "an event from the past")
	after := f.Snapshot()
	after.EventsReceived = before.EventsReceived
	f.is("the cache", fmt.Sprint(after), fmt.Sprint(before))
	f.list(5) // a list heals it, even one of an older version
	f.must(f.Add(pod("default/a", 11, "")))
}

func TestTheListsVersionIsTheBoundUntilSomethingIsDropped(t *testing.T) {
	f := newFixture(t, 4)
	f.list(10)
	assert.NoError(t, assert.ErrorOf(f.since(10)), "resume from the list with an empty ring")
	assert.Fails(t, assert.ErrorOf(f.since(9)), apierrors.IsResourceExpired, "resume from before the list")
	f.fill(15, 17) // 11 to 14 belonged to other resources
	assert.NoError(t, assert.ErrorOf(f.since(10)), "resume from the list")
	f.fill(17, 20) // drops 15
	assert.Fails(t, assert.ErrorOf(f.since(14)), apierrors.IsResourceExpired, "resume from before the first event")
	assert.NoError(t, assert.ErrorOf(f.since(15)), "resume from the event before the first")
}

func TestARingThatIsMadeSmallerByHandForgets(t *testing.T) {
	f := newFixture(t, 0)
	f.list(10)
	f.fill(11, 20)
	f.SetRingCapacity(3)
	f.is("oldest", f.Snapshot().OldestRV, "17")
	assert.Fails(t, assert.ErrorOf(f.since(10)), apierrors.IsResourceExpired, "resume from the list")
	assert.NoError(t, assert.ErrorOf(f.since(16)), "resume from the event before the first")
	f.SetRingCapacity(0)
	f.is("free again", f.Snapshot().Capacity, "100")
}

func TestAnEmptyCacheIsNotInitialized(t *testing.T) {
	_, err := newFixture(t, 4).since(1)
	assert.True(t, err != nil && !apierrors.IsResourceExpired(err), "got %v, want an internal error", err)
}

func TestTheRingGrowsWhileItsEventsAreFreshAndShrinksWhenTheNewestQuarterIsNot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.list(1)
		rv := uint64(2)
		burst := func(n int) int {
			f.fill(rv, rv+uint64(n))
			rv += uint64(n)
			return f.Snapshot().Capacity
		}
		f.is("full, but nothing to append", burst(100), "100")
		f.is("one more", burst(1), "200")
		f.is("many more", burst(1500), "3200")
		time.Sleep(EventFreshDuration - time.Nanosecond)
		f.is("a full ring, just fresh", burst(2000), "6400")

		f = newFixture(t, 0)
		f.list(1)
		f.fill(2, 102)
		time.Sleep(EventFreshDuration)
		f.fill(102, 103)
		f.is("a full ring, just not fresh", f.Snapshot().Capacity, "100")
	})
}

func TestTheRingKeepsItsSizeWhileTheNewestQuarterIsFresh(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.list(1)
		f.fill(2, 402) // capacity 400, full
		time.Sleep(2 * EventFreshDuration)
		f.SetRingCapacity(400) // so that the old events are replaced one by one
		f.fill(402, 502)
		f.SetRingCapacity(0)
		f.fill(502, 503)
		f.is("a hundred events are new, the others are old", f.Snapshot().Capacity, "400")
		time.Sleep(EventFreshDuration)
		f.fill(503, 504)
		f.is("the newest quarter is just fresh", f.Snapshot().Capacity, "400")
		time.Sleep(time.Nanosecond)
		f.fill(504, 505)
		f.is("the newest quarter is old", f.Snapshot().Capacity, "200")
	})
}

// It is the newest quarter that decides, and no smaller part: the ring is halved although its newest fifth is fresh.
func TestTheRingIsHalvedWhenTheNewestQuarterReachesBackFarEnough(t *testing.T) {
	for fresh, want := range map[uint64]string{90: "200", 101: "400"} {
		bubble.Test(t, func(t *testing.T) {
			f := newFixture(t, 0)
			f.list(1)
			f.fill(2, 402) // capacity 400, full
			time.Sleep(EventFreshDuration + time.Second)
			f.SetRingCapacity(400) // so that the old events are replaced one by one
			f.fill(402, 402+fresh)
			f.SetRingCapacity(0)
			f.fill(402+fresh, 403+fresh)
			f.is(fmt.Sprintf("%d of 400 events are fresh", fresh), f.Snapshot().Capacity, want)
		})
	}
}

// bare is a ring without a cache around it, which takes ten times as long to fill.
type bare struct {
	*history
	rv  uint64
	now time.Time
}

func (b *bare) append(n int) {
	for range n {
		b.rv++
		b.appendLocked(&Event{ResourceVersion: b.rv, RecordTime: b.now})
	}
}

func TestTheCapacityIsAlwaysAHundredTimesAPowerOfTwoWithinBounds(t *testing.T) {
	ring := &bare{history: newHistory(0, nil), now: time.Unix(0, 0)}
	var seen []int
	for i := range 200 {
		ring.append(1200)
		if i%7 == 0 {
			ring.now = ring.now.Add(2 * EventFreshDuration)
		}
		capacity := len(ring.cache)
		seen = append(seen, capacity)
		require.True(t, ring.endIndex-ring.startIndex <= capacity && ring.startIndex <= ring.endIndex,
			"ring [%d, %d) with capacity %d", ring.startIndex, ring.endIndex, capacity)
		n := capacity / 100
		require.True(t, capacity%100 == 0 && n&(n-1) == 0, "capacity %d", capacity)
	}
	ring.append(len(ring.cache) - (ring.endIndex - ring.startIndex)) // full
	for range 20 {                                                   // it shrinks as far as it can
		ring.now = ring.now.Add(2 * EventFreshDuration)
		ring.append(1)
	}
	assert.Equal(t, lowerBoundCapacity, len(ring.cache), "after a long time")
	assert.Equal(t, ring.rv-lowerBoundCapacity+1, ring.oldestLocked(), "the newest events are kept")
	assert.True(t, slices.Max(seen) >= 6400, "largest capacity %d: the ring did not grow", slices.Max(seen))
}

func TestAnIntervalThatIsOvertakenFails(t *testing.T) {
	f := newFixture(t, 150)
	f.list(1)
	f.fill(2, 152)
	interval, err := f.since(1)
	f.must(err)
	if _, err := interval.Next(); err != nil { // copies 2 … 101
		t.Fatal(err)
	}
	f.fill(152, 252) // drops 2 … 101: what was copied, and nothing else
	slow, err := f.since(f.Snapshot().OldestRV - 1)
	f.must(err)
	events := f.events(interval)
	f.is("just in time", len(events), "149")
	f.fill(252, 253)
	_, err = read(slow)
	assert.True(t, errors.Is(err, ErrIntervalOvertaken), "got %v, want %v", err, ErrIntervalOvertaken)
}

func TestAWatchChannelHoldsAboutASecondOfEvents(t *testing.T) {
	for _, c := range []struct {
		capacity             int
		indexExists, trigger bool
		want                 int
	}{
		{100, false, false, 10}, {6400, false, false, 86}, {102400, false, false, 100},
		{100, true, false, 10}, {6400, true, false, 86}, {102400, true, false, 1000},
		{100, true, true, 10}, {102400, true, true, 10},
	} {
		assert.Equal(t, c.want, newFixture(t, c.capacity).SuggestedWatchChannelSize(c.indexExists, c.trigger), "%+v", c)
	}
}

func TestWhatWasDroppedBeforeARelistIsNotMissedAfterIt(t *testing.T) {
	f := newFixture(t, 4)
	f.list(10)
	f.fill(11, 20)
	f.list(30)
	for name, more := range map[string]func(){"empty": func() {}, "filled again": func() { f.fill(33, 36) }} {
		more()
		assert.NoError(t, assert.ErrorOf(f.since(30)), "resume from the list, %s ring", name)
		_, err := f.since(29)
		assert.Fails(t, err, apierrors.IsResourceExpired, "resume from before the list, %s ring", name)
	}
}

package cachewatcher

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
)

func TestBucketsAreEmptiedWhenTheirTimeHasCome(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		buckets := NewBookmarkTimeBuckets(clock.RealClock{})
		for range 50 {
			w := New(Config{})
			w.setBookmarkAfter(0)
			buckets.AddLocked(w)
		}
		time.Sleep(59 * time.Second)
		assert.Equal(t, len(buckets.PopExpiredLocked()), 0, "watchers are due early")
		time.Sleep(time.Second)
		if n := len(buckets.PopExpiredLocked()); n != 50 || len(buckets.buckets) != 0 {
			t.Errorf("%d watchers are due, and %d buckets are left", n, len(buckets.buckets))
		}
	})
}

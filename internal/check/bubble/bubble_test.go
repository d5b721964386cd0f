package bubble_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
)

// TestGoroutinesReadExpiredTimersAtOnce crashed a race build within seconds when the bubble had two processors.
func TestGoroutinesReadExpiredTimersAtOnce(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for range 50 {
		bubble.Test(t, func(*testing.T) {
			var readers sync.WaitGroup
			for range 4 {
				readers.Go(func() {
					for range 1000 {
						<-time.NewTimer(0).C
					}
				})
			}
			readers.Wait()
		})
	}
	after := runtime.GOMAXPROCS(0)
	assert.Equal(t, after, before, "got %d processors after the bubbles, want %d as before", after, before)
}

func TestTheLastOfParallelBubblesGivesTheProcessorsBack(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Run("bubbles", func(t *testing.T) {
		for range 4 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(*testing.T) { time.Sleep(time.Hour) })
			})
		}
	})
	after := runtime.GOMAXPROCS(0)
	assert.Equal(t, after, before, "got %d processors after the bubbles, want %d as before", after, before)
}

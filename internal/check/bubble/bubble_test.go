package bubble_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("listwatch/internal/check/bubble_test.forever"))
}

// forever is what an Example leaves behind.
func forever() { select {} }

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

func ExampleExample() {
	bubble.Example(func() {
		start := time.Now()
		time.Sleep(time.Hour)
		fmt.Println("slept for", time.Since(start))
	})
	// Output: slept for 1h0m0s
}

func TestAnExampleThatPanicsOrLeavesAGoroutineFails(t *testing.T) {
	for _, test := range []struct {
		name, want string
		f          func()
	}{
		{"panic", "out of order", func() { panic("out of order") }},
		{"panic with a goroutine left", "out of order", func() { go forever(); panic("out of order") }},
		{"goroutine left", "blocked goroutines remain", func() { go forever() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := panicOf(test.f); !strings.Contains(got, test.want) {
				t.Errorf("got panic %q, want one with %q", got, test.want)
			}
		})
	}
}

// panicOf returns with what Example panicked, as text.
func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	bubble.Example(f)
	return ""
}

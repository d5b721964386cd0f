package bubble_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("listwatch/internal/check/bubble_test.forever"))
}

// forever is the body of a goroutine that an Example leaves behind.
func forever() { select {} }

// TestGoroutinesReadExpiredTimersAtOnce would crash a race build within seconds if the bubble had two processors.
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
	assert.Equal(t, before, runtime.GOMAXPROCS(0), "processors after the bubbles")
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
	assert.Equal(t, before, runtime.GOMAXPROCS(0), "processors after the bubbles")
}

// failing is the environment variable that makes the test below fail in its bubble.
const failing = "BUBBLE_TEST_FAILS"

// TestAFailedRequireSaysWhatIsWrongAndNothingElse runs its own binary, in which a require fails while a goroutine
// waits. The bubble must not panic.
func TestAFailedRequireSaysWhatIsWrongAndNothingElse(t *testing.T) {
	if os.Getenv(failing) != "" {
		bubble.Test(t, func(t *testing.T) {
			bubble.Go(t, "test.waits", func(ctx context.Context) { <-ctx.Done() })
			require.Equal(t, 2, 1)
		})
		return
	}
	again := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	again.Env = append(os.Environ(), failing+"=1")
	said, err := again.CombinedOutput()
	assert.True(t, err != nil && strings.Contains(string(said), "got 1, want 2") &&
		!strings.Contains(string(said), "panic"), "%v: %s", err, said)
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
			got := panicOf(test.f)
			assert.True(t, strings.Contains(got, test.want), "got panic %q, want one with %q", got, test.want)
		})
	}
}

// panicOf runs f as an Example and returns the value of its panic as text.
func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	bubble.Example(f)
	return ""
}

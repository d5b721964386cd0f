package bubble

import (
	"fmt"
	"runtime/debug"
	"testing"
)

// Example runs f in a bubble, for Examples, which have no [testing.T] of their own. Time in f is the bubble's: a sleep
// takes no time. Example panics if f does, and if f leaves behind a goroutine that is blocked.
func Example(f func()) {
	var panicked error
	defer func() {
		if panicked != nil {
			panic(panicked)
		}
	}()
	var t testing.T // has no runner to report a panic to, so this function does
	Test(&t, func(*testing.T) {
		defer func() {
			if value := recover(); value != nil {
				panicked = fmt.Errorf("%v\n%s", value, debug.Stack())
			}
		}()
		f()
	})
}

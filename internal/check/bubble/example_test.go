package bubble_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/bubble"
)

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
		{"panic with a goroutine left", "out of order", func() { go func() { select {} }(); panic("out of order") }},
		{"goroutine left", "blocked goroutines remain", func() { go func() { select {} }() }},
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

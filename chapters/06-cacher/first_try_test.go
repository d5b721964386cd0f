package cacher

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// First try: send each event to every watcher in turn.
func Example_blockOnTheSlowest() {
	bubble.Example(func() {
		laptop, desk := make(chan int, 2), make(chan int, 2) // with room for two events
		go func() {                                          // the dispatcher
			defer close(desk)
			for version := 11; version <= 14; version++ {
				laptop <- version
				desk <- version
			}
		}()
		go func() { // the laptop, in the tunnel for an hour
			time.Sleep(time.Hour)
			for range 4 {
				<-laptop
			}
		}()
		start := time.Now()
		for version := range desk {
			fmt.Println("the desk gets", version, "after", time.Since(start))
		}
	})
	// Output:
	// the desk gets 11 after 0s
	// the desk gets 12 after 0s
	// the desk gets 13 after 1h0m0s
	// the desk gets 14 after 1h0m0s
}

// Second try: leave out a watcher that has no room.
func Example_dropTheEvent() {
	bubble.Example(func() {
		laptop := make(chan int, 2)
		go func() { // the dispatcher, with an event a minute
			defer close(laptop)
			for version := 11; version <= 16; version++ {
				select {
				case laptop <- version:
				default: // no room
				}
				time.Sleep(time.Minute)
			}
		}()
		time.Sleep(4*time.Minute + 30*time.Second) // the tunnel
		for version := range laptop {
			fmt.Println("the laptop gets", version)
		}
	})
	// Output:
	// the laptop gets 11
	// the laptop gets 12
	// the laptop gets 16
}

// Third try: give the watcher a queue without a limit.
func Example_queueWithoutALimit() {
	bubble.Example(func() {
		var laptop [][]byte // the events that wait
		start := time.Now()
		for time.Since(start) < time.Hour { // ten events a second, of a kilobyte each
			laptop = append(laptop, make([]byte, 1<<10))
			time.Sleep(time.Second / 10)
		}
		held := 0
		for _, event := range laptop {
			held += len(event)
		}
		fmt.Println("after", time.Since(start), len(laptop), "events wait, in", held>>20, "MB")
	})
	// Output: after 1h0m0s 36000 events wait, in 35 MB
}

// TestTheCacherKeepsWhatEachTryBroke serves a laptop that does not read, and a desk that does, from a Cacher.
func TestTheCacherKeepsWhatEachTryBroke(t *testing.T) {
	const events = 24 // two more than a watcher holds, and one that it has no room for
	run(t, nil, func(f *fixture) {
		time.Sleep(time.Minute) // the budget is full
		rv := f.create("default/a")
		laptop, desk := f.watch("", everything(rv)), f.reading(f.watch("", everything(rv)))
		synctest.Wait()
		start := time.Now()
		for range events {
			f.update("default/a")
			synctest.Wait() // the laptop's goroutine has done what it can
		}
		time.Sleep(time.Second)
		assert.Equal(t, "22 after 0s, 2 after 100ms", desk.delays(start), "the desk's delays")
		before := seen(laptop)
		last := len(before) - 1
		require.True(t, last >= 1 && before[last] == "closed", "the laptop gets %v, want that its watch ends", before)
		before = before[:len(before)-1]
		_, version, _ := strings.Cut(strings.TrimPrefix(before[len(before)-1], "MODIFIED "), " ")
		again := f.watch("", everything(version))
		after := seen(again)
		var want []string
		for n := range events {
			want = append(want, fmt.Sprintf("MODIFIED default/a %d", 3+n))
		}
		assert.EqualSlices(t, want, append(before, after...), "in two watches the laptop gets")
		again.Stop()
		seen(again)
	})
}

// delays says how many events came how long after start: "2 after 0s, 1 after 1s".
func (a *arrivals) delays(start time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var delays []string
	for i, from := 0, 0; i < len(a.times); i++ {
		if i+1 == len(a.times) || !a.times[i+1].Equal(a.times[i]) {
			delays = append(delays, fmt.Sprintf("%d after %v", i+1-from, a.times[i].Sub(start)))
			from = i + 1
		}
	}
	return strings.Join(delays, ", ")
}

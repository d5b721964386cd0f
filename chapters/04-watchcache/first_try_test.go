package watchcache

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"listwatch/internal/check/bubble"
)

// First try: keep every event.
func Example_keepEverything() {
	bubble.Example(func() {
		pods := map[string]bool{}
		var events [][]byte
		start := time.Now()
		for time.Since(start) < time.Hour { // ten writes a second, to ten pods in turn
			pods[fmt.Sprint("pod-", len(events)%10)] = true
			events = append(events, make([]byte, 1<<10)) // a small pod, as JSON
			time.Sleep(time.Second / 10)
		}
		held := 0
		for _, event := range events {
			held += len(event)
		}
		fmt.Println("after", time.Since(start))
		fmt.Println(len(pods), "pods,", len(events), "events,", held>>20, "MB")
	})
	// Output:
	// after 1h0m0s
	// 10 pods, 36000 events, 35 MB
}

// Second try: keep the newest three events.
func Example_keepTheNewest() {
	type event struct {
		version   int
		verb, pod string
	}
	apply := func(pods map[string]bool, e event) {
		pods[e.pod] = true
		if e.verb == "DELETED" {
			delete(pods, e.pod)
		}
	}
	// The client lists at version 5: both have one pod.
	server, client := map[string]bool{"a": true}, map[string]bool{"a": true}
	var newest []event
	all := []event{{6, "DELETED", "a"}, {7, "ADDED", "b"}, {8, "ADDED", "c"}, {9, "ADDED", "d"}}
	for _, e := range all {
		apply(server, e)
		newest = append(newest, e)
		newest = newest[max(0, len(newest)-3):]
	}
	for _, e := range newest { // the client comes back, and watches from 5
		if e.version > 5 {
			apply(client, e)
		}
	}
	fmt.Println("the server has", slices.Sorted(maps.Keys(server)))
	fmt.Println("the client has", slices.Sorted(maps.Keys(client)))
	// Output:
	// the server has [b c d]
	// the client has [a b c d]
}

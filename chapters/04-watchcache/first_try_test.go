package watchcache

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// TestAClientThatWouldBeDeceivedIsRefused puts the watch cache into the second try's place.
func TestAClientThatWouldBeDeceivedIsRefused(t *testing.T) {
	f := newFixture(t, 3)
	f.list(5, pod("default/a", 5, ""))
	f.delete("default/a", 6)
	f.add("default/b", 7)
	f.add("default/c", 8)
	f.add("default/d", 9)
	if _, err := f.since(5); !apierrors.IsResourceExpired(err) {
		t.Errorf("watch from 5: got %v, want Expired", err)
	}
	events, err := read(f.state("/registry/pods/", true)) // so the client begins again
	f.must(err)
	f.is("the client has", events, "[ADDED default/b 9 ADDED default/c 9 ADDED default/d 9]")
	interval, err := f.since(6)
	f.must(err)
	events, err = read(interval)
	f.must(err)
	f.is("a client at 6 gets", events, "[ADDED default/b 7 ADDED default/c 8 ADDED default/d 9]")
}

// TestWhatIsKeptHasABound puts the watch cache into the first try's place.
func TestWhatIsKeptHasABound(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		f.list(5)
		for rv := uint64(6); rv < 6+9_000; rv++ { // a quarter of an hour
			f.update(fmt.Sprint("default/pod-", rv%10), rv)
			time.Sleep(time.Second / 10)
		}
		if s := f.Snapshot(); s.Capacity != 800 { // 75 seconds are 750 events, and 100 was doubled three times
			t.Errorf("the ring has room for %d events, want 800", s.Capacity)
		}
	})
}

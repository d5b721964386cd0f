package reflector

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/routine"
)

// First try: ask for the list once a second.
func Example_poll() {
	server := func(at time.Duration) int { // 100 pods, and 101 for half a second each minute
		at %= time.Minute
		if time.Second/10 < at && at < time.Second*6/10 {
			return 101
		}
		return 100
	}
	received, changes, before := 0, 0, 100
	for at := time.Duration(0); at < time.Hour; at += time.Second {
		pods := server(at)
		received += pods
		if pods != before {
			changes++
		}
		before = pods
	}
	fmt.Println("in an hour:", received, "pods received,", changes, "changes noticed")
	// Output: in an hour: 360000 pods received, 0 changes noticed
}

// change is one write.
type change struct {
	version   int
	verb, pod string
}

// changes are the server's changes, in order.
var changes = []change{
	{5, "ADDED", "a"},
	{6, "ADDED", "b"},
	{7, "DELETED", "b"},
	{8, "DELETED", "a"},
	{9, "ADDED", "c"},
}

// apply returns the pods after a change.
func apply(pods []string, c change) []string {
	if c.verb == "DELETED" {
		return slices.DeleteFunc(pods, func(pod string) bool { return pod == c.pod })
	}
	return append(pods, c.pod)
}

// Second try: watch first, so that no change is missed. Then list.
func Example_watchThenList() {
	stream := changes[1:] // the watch began after 5; these wait in the connection
	var pods []string
	for _, c := range changes[:3] { // the list is answered at 7
		pods = apply(pods, c)
	}
	fmt.Println("the list at 7:", pods)
	for _, c := range stream {
		pods = apply(pods, c)
		fmt.Println(c.version, c.verb, c.pod, "makes it", pods)
	}
	// Output:
	// the list at 7: [a]
	// 6 ADDED b makes it [a b]
	// 7 DELETED b makes it [a]
	// 8 DELETED a makes it []
	// 9 ADDED c makes it [c]
}

// Third try: list first. Then watch from now on.
func Example_listThenWatchFromNow() {
	var pods []string
	for _, c := range changes[:3] { // the list is answered at 7
		pods = apply(pods, c)
	}
	stream := changes[4:] // when the watch begins, the server is at 8
	for _, c := range stream {
		pods = apply(pods, c)
	}
	fmt.Println("the store has", pods)
	// Output: the store has [a c]
}

// TestTheReflectorHearsOfEachChangeOnce puts the reflector into the tries' place. What a watch brings depends on the
// version for which it is asked.
func TestTheReflectorHearsOfEachChangeOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &record{}
		s.onList(listing(podList("5", pod("a", "5"))))
		s.onWatch(func(options metav1.ListOptions) (watch.Interface, error) {
			var events []watch.Event
			for _, c := range changes {
				if after, err := strconv.Atoi(options.ResourceVersion); err == nil && c.version > after {
					events = append(events, event(watch.EventType(c.verb), pod(c.pod, strconv.Itoa(c.version))))
				}
			}
			return played(2*time.Hour, events...)(options)
		})
		ctx, cancel := context.WithCancel(t.Context())
		var routines routine.Group
		routines.Go(ctx, "test.reflector", newTestReflector(s, store, nil).Run)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := "replace [a@5] at 5; add b@6; delete b@7; delete a@8; add c@9"
		got := store.log()
		assert.True(t, got == want, "the store was told\n%s, want\n%s", got, want)
		asked := strings.Split(s.log(), "\n")
		assert.True(t, len(asked) == 2, "in an hour the server was asked %q, want one list and one watch", asked)
		cancel()
		routines.Wait()
	})
}

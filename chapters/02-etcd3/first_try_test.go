package etcd3

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// First try: get the object, change it, put it.
func Example_getChangePut() {
	type pod struct{ node, app string }
	etcd := map[string]pod{"default/a": {}}

	scheduler, user := etcd["default/a"], etcd["default/a"] // both get
	scheduler.node = "n1"
	user.app = "web"
	etcd["default/a"] = scheduler // etcd accepts both
	etcd["default/a"] = user

	fmt.Printf("%+v\n", etcd["default/a"])
	// Output: {node: app:web}
}

// Second try, for a watch: decode each event in a goroutine of its own.
func Example_decodeEachOnItsOwn() {
	bubble.Example(func() {
		type event struct {
			revision, kilobytes int
			text                string
		}
		decoded := make(chan event)
		events := []event{{20, 9, "MODIFIED a"}, {21, 1, "DELETED a"}, {22, 4, "ADDED b"}}
		for _, e := range events {
			go func() {
				time.Sleep(time.Duration(e.kilobytes) * time.Millisecond) // decodes it
				decoded <- e
			}()
		}
		for range events {
			e := <-decoded
			fmt.Println(e.revision, e.text)
		}
	})
	// Output:
	// 21 DELETED a
	// 22 ADDED b
	// 20 MODIFIED a
}

// TestTwoWritersKeepBothChanges puts GuaranteedUpdate into the first try's place. (The second one's place takes
// TestEventsLeaveInOrderHoweverLongTheyTakeAndAreDecodedAtOnce.)
func TestTwoWritersKeepBothChanges(t *testing.T) {
	s, _ := newMVCC(t)
	create(t, s, pod("a", ""))
	calls, out := 0, &corev1.Pod{}
	bind := func(current runtime.Object) (runtime.Object, error) {
		if calls++; calls == 1 {
			relabel(t, s, "a", "web") // another client is faster
		}
		current.(*corev1.Pod).Spec.NodeName = "n1"
		return current, nil
	}
	require.NoError(t, s.GuaranteedUpdate(t.Context(), key("a"), out, false, nil, bind, nil))
	got := out.Spec.NodeName + " " + out.Labels["app"]
	assert.True(t, got == "n1 web" && calls == 2, "after %d calls the pod has %q, want both changes after two", calls, got)
}

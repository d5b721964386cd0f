package etcd3

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// First try: get the object, change it, put it.
func Example_getChangePut() {
	type pod struct{ node, app string }
	etcd := map[string]pod{"default/a": {}}

	scheduler, user := etcd["default/a"], etcd["default/a"] // both get the pod
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
// TestTheDrawingOfDecodingIsOfThisStore.)
func TestTwoWritersKeepBothChanges(t *testing.T) {
	onBoth(t, func(t *testing.T, client Client) {
		log := probe.NewLog(clock.RealClock{}, 64)
		s := newStore(t, client, func(cfg *Config) { cfg.Probe = probe.New(log) })
		create(t, s, pod("a", ""))
		var seen []string
		bind := func(current runtime.Object) (runtime.Object, error) {
			p := current.(*corev1.Pod)
			if seen = append(seen, p.ResourceVersion); len(seen) == 1 {
				relabel(t, s, "a", "web") // another client is faster
			}
			p.Spec.NodeName = "n1"
			return p, nil
		}
		out := &corev1.Pod{}
		require.NoError(t, s.GuaranteedUpdate(t.Context(), key("a"), out, false, nil, bind, nil))
		assert.Equal(t, "n1 web 4", out.Spec.NodeName+" "+out.Labels["app"]+" "+out.ResourceVersion)
		assert.EqualSlices(t, []string{"2", "3"}, seen, "bind was given the versions")
		conflicts := probetest.Records(log, probe.TxnConflict)
		assert.True(t, len(conflicts) == 1 && conflicts[0].RV == 3, "got %v, want one conflict, that found 3",
			conflicts)
	})
}

package deltafifo_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/check/assert"
)

func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: rv}}
}

func podWithUID(name, uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)}}
}

// First try: the reflector sends objects into a channel, and the consumer stores what it
// receives.
func Example_aChannelOfObjects() {
	queue := make(chan *corev1.Pod, 100)
	queue <- pod("a", "1")
	queue <- pod("b", "2")
	// The connection breaks, another client deletes b, and the reflector lists again.
	list := map[string]*corev1.Pod{"a": pod("a", "1")}
	for _, listed := range list {
		queue <- listed
	}
	close(queue)

	store := map[string]*corev1.Pod{}
	for obj := range queue {
		store[obj.Name] = obj
	}
	fmt.Printf("the server has %q\n", slices.Sorted(maps.Keys(list)))
	fmt.Printf("the store has  %q\n", slices.Sorted(maps.Keys(store)))
	// Output:
	// the server has ["a"]
	// the store has  ["a" "b"]
}

// Second try: a map keeps the newest state of each key, nil for a deletion; a slice keeps the
// keys in order.
func Example_theNewestOfEachKey() {
	newest, order := map[string]*corev1.Pod{}, []string{}
	put := func(key string, obj *corev1.Pod) {
		if _, waits := newest[key]; !waits {
			order = append(order, key)
		}
		newest[key] = obj
	}
	store := map[string]*corev1.Pod{"a": podWithUID("a", "first")}
	// While the consumer is busy, pod a is deleted, and another pod a is created.
	put("a", nil)
	put("a", podWithUID("a", "second"))

	for _, key := range order {
		old, obj := store[key], newest[key]
		switch {
		case obj == nil:
			fmt.Println("OnDelete", key, old.UID)
		case old == nil:
			fmt.Println("OnAdd", key, obj.UID)
		default:
			fmt.Println("OnUpdate", key, "from", old.UID, "to", obj.UID)
		}
	}
	// Output: OnUpdate a from first to second
}

// Third try: a map keeps every change of each key; a slice keeps the keys in order.
func Example_aBundleForEachKey() {
	bundles, order := map[string][]*corev1.Pod{}, []string{}
	put := func(obj *corev1.Pod) {
		if len(bundles[obj.Name]) == 0 {
			order = append(order, obj.Name)
		}
		bundles[obj.Name] = append(bundles[obj.Name], obj)
	}
	put(pod("a", "1")) // create a
	put(pod("b", "2")) // create b
	put(pod("a", "3")) // update a: it refers to b now

	store := map[string]string{}
	for _, key := range order {
		for _, obj := range bundles[key] {
			store[key] = obj.ResourceVersion
			fmt.Println(store)
		}
	}
	// Output:
	// map[a:1]
	// map[a:3]
	// map[a:3 b:2]
}

// TestRealFIFOInTheTriesPlace gives the RealFIFO what the three tries were given.
func TestRealFIFOInTheTriesPlace(t *testing.T) {
	queue := func() *deltafifo.RealFIFO {
		return deltafifo.NewRealFIFO(nil, nil)
	}
	drain := func(q *deltafifo.RealFIFO, apply func(deltafifo.Delta)) {
		q.Close()
		for q.Pop(func(deltas deltafifo.Deltas, _ bool) error { apply(deltas[0]); return nil }) == nil {
		}
	}

	q, store := queue(), map[string]bool{}
	q.Add(pod("a", "1"))
	q.Add(pod("b", "2"))
	q.Replace([]any{pod("a", "1")}, "3")
	drain(q, func(delta deltafifo.Delta) {
		if info, ok := delta.Object.(deltafifo.ReplacedAllInfo); ok {
			clear(store)
			for _, obj := range info.Objects {
				store[obj.(*corev1.Pod).Name] = true
			}
			return
		}
		store[delta.Object.(*corev1.Pod).Name] = true
	})
	assert.NoDiff(t, map[string]bool{"a": true}, store, "after a list without b")

	q = queue()
	q.Delete(podWithUID("a", "first"))
	q.Add(podWithUID("a", "second"))
	var changes []string
	drain(q, func(delta deltafifo.Delta) {
		changes = append(changes, string(delta.Type)+" "+string(delta.Object.(*corev1.Pod).UID))
	})
	assert.NoDiff(t, []string{"Deleted first", "Added second"}, changes, "a pod that was deleted and made again")

	q = queue()
	q.Add(pod("a", "1"))
	q.Add(pod("b", "2"))
	q.Update(pod("a", "3"))
	versions, states := map[string]string{}, []string{}
	drain(q, func(delta deltafifo.Delta) {
		versions[delta.Key] = delta.Object.(*corev1.Pod).ResourceVersion
		states = append(states, fmt.Sprint(versions))
	})
	want := []string{"map[default/a:1]", "map[default/a:1 default/b:2]", "map[default/a:3 default/b:2]"}
	assert.NoDiff(t, want, states, "the store's states")
}

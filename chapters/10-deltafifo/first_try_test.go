package deltafifo_test

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: rv}}
}

func podWithUID(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: types.UID(uid)}}
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
	store := map[string]*corev1.Pod{"a": podWithUID("first")}
	// While the consumer is busy, pod a is deleted, and another pod a is created.
	put("a", nil)
	put("a", podWithUID("second"))

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

package indexer_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// First try: the store is a map, and a question looks at every object.
func Example_lookAtEveryObject() {
	store := map[string]*corev1.Pod{}
	for n := range 10_000 {
		name := fmt.Sprint("pod-", n)
		store[name] = podOn(fmt.Sprint("node-", n%1000), name, "1")
	}
	looked, found := 0, 0
	for _, pod := range store {
		looked++
		if pod.Spec.NodeName == "node-7" {
			found++
		}
	}
	fmt.Println("looked at", looked, "pods to find", found)
	// Output: looked at 10000 pods to find 10
}

// Second try: an index by node beside the map. An update moves the key from the node of the old
// pod to that of the new one.
func Example_anIndexThatAHandlerMisleads() {
	store := map[string]*corev1.Pod{}
	byNode := map[string][]string{}
	update := func(pod *corev1.Pod) {
		if old, exists := store[pod.Name]; exists {
			keys := byNode[old.Spec.NodeName]
			byNode[old.Spec.NodeName] = slices.DeleteFunc(keys, func(key string) bool {
				return key == old.Name
			})
		}
		byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod.Name)
		store[pod.Name] = pod
	}
	update(podOn("node-1", "a", "1"))
	store["a"].Spec.NodeName = "unknown" // a handler writes to the object it was given
	update(podOn("node-2", "a", "2"))

	fmt.Printf("on node-1: %q, on node-2: %q\n", byNode["node-1"], byNode["node-2"])
	// Output: on node-1: ["a"], on node-2: ["a"]
}

func podOn(node, name, rv string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: rv},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

package indexer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	indexer "listwatch/chapters/11-indexer"
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

// TestTheIndexerInTheTriesPlace asks the indexer what the tries were asked. It is misled as they are, unless the
// handler copies.
func TestTheIndexerInTheTriesPlace(t *testing.T) {
	calls := 0
	byNode := func(obj any) ([]string, error) {
		calls++
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}
	pods := indexer.NewIndexer(indexer.Config{Indexers: indexer.Indexers{"node": byNode}})
	for n := range 10_000 {
		pods.Add(podOn(fmt.Sprint("node-", n%1000), fmt.Sprint("pod-", n), "1"))
	}
	calls = 0
	if found, err := pods.ByIndex("node", "node-7"); err != nil || len(found) != 10 || calls != 0 {
		t.Errorf("found %d pods, %v, and looked at %d, want 10 and 0", len(found), err, calls)
	}

	for _, handler := range []struct {
		name   string
		given  func(*corev1.Pod) *corev1.Pod
		behind []string
	}{
		{"a handler that writes to the stored object", func(pod *corev1.Pod) *corev1.Pod { return pod },
			[]string{"default/a"}},
		{"a handler that writes to a copy", (*corev1.Pod).DeepCopy, nil},
	} {
		pods := indexer.NewIndexer(indexer.Config{Indexers: indexer.Indexers{"node": byNode}})
		pods.Add(podOn("node-1", "a", "1"))
		obj, _, _ := pods.GetByKey("default/a")
		handler.given(obj.(*corev1.Pod)).Spec.NodeName = "unknown"
		pods.Update(podOn("node-2", "a", "2"))
		keys, err := pods.IndexKeys("node", "node-1")
		if diff := cmp.Diff(handler.behind, slices.Clip(keys)); err != nil || len(handler.behind) != len(keys) {
			t.Errorf("%s leaves on node-1 %v (-want +got):\n%s", handler.name, err, diff)
		}
	}
}

func podOn(node, name, rv string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: rv},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

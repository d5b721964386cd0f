package indexer_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	indexer "listwatch/chapters/11-indexer"
)

func podOn(node, name, rv string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: rv},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func ExampleNewIndexer() {
	byNode := func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
	pods := indexer.NewIndexer(indexer.Config{Indexers: indexer.Indexers{"node": byNode}})
	pods.Add(podOn("node-1", "a", "1"))
	pods.Add(podOn("node-1", "b", "2"))
	pods.Update(podOn("node-2", "a", "3"))

	keys, _ := pods.IndexKeys("node", "node-1")
	fmt.Println(keys, pods.LastStoreSyncResourceVersion())
	// Output: [default/b] 3
}

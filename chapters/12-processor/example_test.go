package processor_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	processor "listwatch/chapters/12-processor"
)

// To a handler behind a filter, a pod that gets a node is new, and one that loses it is gone.
func ExampleFilteringResourceEventHandler() {
	handler := processor.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool { return obj.(*corev1.Pod).Spec.NodeName != "" },
		Handler: processor.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { fmt.Println("added") },
			UpdateFunc: func(any, any) { fmt.Println("updated") },
			DeleteFunc: func(any) { fmt.Println("deleted") },
		},
	}
	pending := &corev1.Pod{}
	bound := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}
	handler.OnAdd(pending, true)
	handler.OnUpdate(pending, bound)
	handler.OnUpdate(bound, bound)
	// Output:
	// added
	// updated
}

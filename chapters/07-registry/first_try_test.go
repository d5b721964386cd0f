package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// First try: a PUT stores what the client sent.
func Example_storeWhatTheClientSent() {
	stored := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "7e1c"},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	put := func(body string) error {
		var sent corev1.Pod
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			return err
		}
		stored = sent
		return nil
	}
	// kubectl replace -f a.yaml: a file that was written before pod a ran.
	err := put(
		`{"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": {"nodeName": "node-1"}}`)
	fmt.Printf("labels %v, uid %q, phase %q, %v\n", stored.Labels, stored.UID,
		stored.Status.Phase, err)
	// Output: labels map[app:web], uid "", phase "", <nil>
}

// Second try: the server keeps what is its own. A DELETE removes the pod.
func Example_removeAtOnce() {
	pods := map[string]string{"a": "node-1"}     // name → node
	running := map[string]bool{"a@node-1": true} // containers on the nodes

	delete(pods, "a") // kubectl delete pod a
	// The controller sees that its pod is gone, and creates the next one, which is bound to
	// node-2.
	if _, exists := pods["a"]; !exists {
		pods["a"] = "node-2"
		running["a@node-2"] = true
	}
	fmt.Printf("now run %q\n", slices.Sorted(maps.Keys(running)))
	delete(running, "a@node-1") // the kubelet of node-1 needs some seconds to stop a container
	fmt.Printf("later %q\n", slices.Sorted(maps.Keys(running)))
	// Output:
	// now run ["a@node-1" "a@node-2"]
	// later ["a@node-2"]
}

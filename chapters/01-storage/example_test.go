package storage_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	storage "listwatch/chapters/01-storage"
)

// A prefix ends at a slash, or it would reach into the neighbours.
func ExamplePrepareKey() {
	fmt.Println(storage.PrepareKey("/registry/pods", "/registry/pods", true))
	fmt.Println(storage.PrepareKey("/registry/pods", "/registry/podsecurity/a", false))
	// Output:
	// /registry/pods/ <nil>
	//  storage key "/registry/podsecurity/a" lies outside "/registry/pods"
}

// A page names the revision it was read at and the key after its last.
func ExampleEncodeContinue() {
	token, _ := storage.EncodeContinue("/registry/pods/default/a\x00", "/registry/pods/", 7)
	key, rv, err := storage.DecodeContinue(token, "/registry/pods/")
	fmt.Printf("%q at %d, %v\n", key, rv, err)
	// Output: "/registry/pods/default/a\x00" at 7, <nil>
}

// A predicate is asked about one object at a time.
func ExampleSelectionPredicate_Matches() {
	web := storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"app": "web"}),
		GetAttrs: storage.DefaultNamespaceScopedAttr}
	pod := &corev1.Pod{}
	pod.Labels = map[string]string{"app": "web"}
	fmt.Println(web.Matches(pod))
	// Output: true <nil>
}

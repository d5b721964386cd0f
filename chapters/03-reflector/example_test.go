package reflector_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	reflector "listwatch/chapters/03-reflector"
)

func ExampleMetaNamespaceKeyFunc() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, obj := range []any{pod, node, "default/b"} {
		key, _ := reflector.MetaNamespaceKeyFunc(obj)
		fmt.Println(key)
	}
	// Output:
	// default/a
	// n
	// default/b
}

package main

import (
	"cmp"
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestPodsGetTheLabelsOfTheConfigMap runs the controller against the API server $SERVER, with a pod created before the
// config map, a pod created after it, and a label that changes.
func TestPodsGetTheLabelsOfTheConfigMap(t *testing.T) {
	server := cmp.Or(os.Getenv("SERVER"), "http://127.0.0.1:8080")
	core := kubernetes.NewForConfigOrDie(&rest.Config{Host: server, QPS: -1}).CoreV1()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	create := func(name string) {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: named(name),
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}}}
		if _, err := core.Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	wears := func(name, team string) {
		t.Helper()
		var got string
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 10*time.Second, true,
			func(ctx context.Context) (bool, error) {
				pod, err := core.Pods("default").Get(ctx, name, metav1.GetOptions{})
				got = pod.Labels["team"]
				return got == team, err
			})
		if err != nil {
			t.Fatalf("pod %s: got team=%q, want %q", name, got, team)
		}
	}
	create("early")
	labels := &corev1.ConfigMap{ObjectMeta: named("labels"), Data: map[string]string{"team": "blue"}}
	if _, err := core.ConfigMaps("default").Create(t.Context(), labels, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		run(ctx, kubernetes.NewForConfigOrDie(&rest.Config{Host: server, QPS: -1}))
		close(ended)
	}()
	wears("early", "blue")
	create("late")
	wears("late", "blue")
	labels.Data["team"] = "green"
	if _, err := core.ConfigMaps("default").Update(t.Context(), labels, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wears("early", "green")
	wears("late", "green")
	cancel()
	<-ended
}

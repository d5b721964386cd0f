// Command withruntime is mirror on controller-runtime. Its comments name the chapters that explain its parts.
package main

import (
	"context"
	"flag"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type mirror struct{ client.Client } // reads an informer's indexer (chapter 11), writes by requests (09)

// Reconcile is called for each key from the queue (chapter 14).
func (m mirror) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	var wanted corev1.ConfigMap
	noPod := m.Get(ctx, request.NamespacedName, &pod) // chapter 11: GetByKey, and a copy
	noMap := m.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: "labels"}, &wanted)
	if noPod != nil || noMap != nil {
		return ctrl.Result{}, client.IgnoreNotFound(noPod)
	}
	before := pod.DeepCopy()
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if maps.Copy(pod.Labels, wanted.Data); maps.Equal(pod.Labels, before.Labels) {
		return ctrl.Result{}, nil // chapter 14: level-triggered
	}
	return ctrl.Result{}, m.Patch(ctx, &pod, client.MergeFrom(before)) // chapter 14: after an error, AddRateLimited
}

func (m mirror) podsOf(ctx context.Context, object client.Object) (requests []ctrl.Request) {
	var pods corev1.PodList
	_ = m.List(ctx, &pods, client.InNamespace(object.GetNamespace())) // a list from the indexer does not fail
	for _, pod := range pods.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&pod)})
	}
	return requests
}

func main() {
	address := flag.String("server", "http://127.0.0.1:8080", "the API server's `URL`")
	flag.Parse()
	options := ctrl.Options{Metrics: server.Options{BindAddress: "0"}}
	manager, err := ctrl.NewManager(&rest.Config{Host: *address}, options) // chapter 13: an informer factory
	if err != nil {
		panic(err)
	}
	m := mirror{manager.GetClient()}
	mapped := handler.EnqueueRequestsFromMapFunc(m.podsOf) // chapter 12: a handler that adds keys
	// For and Watches add informers (chapters 03, 10, 11), Complete adds a queue (14), and Start runs all of them (13).
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).Watches(&corev1.ConfigMap{}, mapped).Complete(m)
	if err == nil {
		err = manager.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		panic(err)
	}
}

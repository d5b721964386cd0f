// Command withruntime is mirror on controller-runtime. Its comments give the numbers of the book's chapters.
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

type mirror struct{ client.Client } // reads: 11, the indexer of an informer; writes: 09, a request

func (m mirror) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) { // 14: a key from the queue
	var pod corev1.Pod
	var wanted corev1.ConfigMap
	noPod := m.Get(ctx, request.NamespacedName, &pod) // 11: GetByKey, and a copy
	noMap := m.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: "labels"}, &wanted)
	if noPod != nil || noMap != nil {
		return ctrl.Result{}, client.IgnoreNotFound(noPod)
	}
	before := pod.DeepCopy()
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if maps.Copy(pod.Labels, wanted.Data); maps.Equal(pod.Labels, before.Labels) {
		return ctrl.Result{}, nil // 14: level-triggered
	}
	return ctrl.Result{}, m.Patch(ctx, &pod, client.MergeFrom(before)) // 07, 02: an update; an error: 14, AddRateLimited
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
	manager, err := ctrl.NewManager(&rest.Config{Host: *address}, options) // 13: a factory of shared informers
	if err != nil {
		panic(err)
	}
	m := mirror{manager.GetClient()}
	mapped := handler.EnqueueRequestsFromMapFunc(m.podsOf) // 12: a handler, which adds keys
	// For and Watches: 03, 10, 11, an informer each. Complete: 14, a queue with its workers. Start: 13, Run and the wait.
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).Watches(&corev1.ConfigMap{}, mapped).Complete(m)
	if err == nil {
		err = manager.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		panic(err)
	}
}

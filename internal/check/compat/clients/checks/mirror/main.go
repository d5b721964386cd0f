// Command mirror is the last step of the path in docs/LABS.md: a controller on plain client-go that runs against any
// API server. It gives each pod the labels in the data of its namespace's config map "labels".
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/signal"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

func main() {
	server := flag.String("server", "http://127.0.0.1:8080", "the API server's `URL`, or that of kubectl proxy")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run(ctx, kubernetes.NewForConfigOrDie(&rest.Config{Host: *server, UserAgent: "mirror"}))
}

// mirror is the controller. Its queue holds the keys of pods.
type mirror struct {
	client kubernetes.Interface
	pods   corelisters.PodLister
	maps   corelisters.ConfigMapLister
	queue  workqueue.TypedRateLimitingInterface[string]
}

// run runs the informers and the controller until ctx is done.
func run(ctx context.Context, client kubernetes.Interface) {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, maps := factory.Core().V1().Pods(), factory.Core().V1().ConfigMaps()
	m := &mirror{client, pods.Lister(), maps.Lister(),
		workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	see := cache.ResourceEventHandlerFuncs{AddFunc: m.see, UpdateFunc: func(_, obj any) { m.see(obj) }}
	_, _ = pods.Informer().AddEventHandler(see) // AddEventHandler fails only on a stopped informer
	_, _ = maps.Informer().AddEventHandler(see)
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	context.AfterFunc(ctx, m.queue.ShutDown)
	for m.processNextWorkItem(ctx) {
	}
}

// see adds the keys of the pods that a change may affect.
func (m *mirror) see(obj any) {
	switch obj := obj.(type) {
	case *corev1.Pod:
		m.queue.Add(obj.Namespace + "/" + obj.Name)
	case *corev1.ConfigMap:
		pods, _ := m.pods.Pods(obj.Namespace).List(labels.Everything()) // a lister's List does not fail
		for _, pod := range pods {
			m.see(pod)
		}
	}
}

// processNextWorkItem works on one key. It returns false when the queue has been shut down.
func (m *mirror) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := m.queue.Get()
	if shutdown {
		return false
	}
	defer m.queue.Done(key)
	if m.reconcile(ctx, key) != nil {
		m.queue.AddRateLimited(key)
	} else {
		m.queue.Forget(key)
	}
	return true
}

// reconcile gives the key's pod the labels that it lacks. A missing pod or config map is not an error.
func (m *mirror) reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	pod, noPod := m.pods.Pods(namespace).Get(name)
	wanted, noMap := m.maps.ConfigMaps(namespace).Get("labels")
	if noPod != nil || noMap != nil {
		return nil // a lister's only error is NotFound; an event follows if that changes
	}
	lacks := map[string]string{}
	for label, value := range wanted.Data {
		if pod.Labels[label] != value {
			lacks[label] = value
		}
	}
	if len(lacks) == 0 {
		return nil // for example, after the event of our own write
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": lacks, "uid": pod.UID}})
	if err != nil {
		return err
	}
	_, err = m.client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

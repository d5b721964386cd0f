// Command oldclient is a program from 2022, on client-go 0.26: it becomes leader by its lease, and then runs a shared
// informer with resync, an indexer with a queue, and dynamic and metadata informers. It uses JSON first, then protobuf,
// and prints the events that the informers received.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func main() {
	address := flag.String("server", "", "the API server's `URL`")
	flag.Parse()
	config := rest.Config{Host: *address, UserAgent: "oldclient", QPS: -1}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, metav1.NamespaceDefault, "oldclient", nil,
		kubernetes.NewForConfigOrDie(&config).CoordinationV1(), resourcelock.ResourceLockConfig{Identity: "me"})
	check(err)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStoppedLeading: func() { fmt.Println("released") },
			OnStartedLeading: func(ctx context.Context) {
				fmt.Println("leads")
				for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
					config := rest.CopyConfig(&config)
					config.ContentType = contentType
					look(ctx, config)
				}
				cancel()
			}},
	})
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// look runs one informer of each kind while it creates, changes and deletes a config map, and prints their reports.
func look(ctx context.Context, config *rest.Config) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	client := kubernetes.NewForConfigOrDie(config)
	shared := informers.NewSharedInformerFactory(client, time.Minute)
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0)
	meta := metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(&rest.Config{Host: config.Host,
		UserAgent: config.UserAgent}), 0)
	queue := workqueue.New()
	add := func(obj any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		check(err)
		queue.Add(key)
	}
	_, indexer := cache.NewIndexerInformer(cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps",
		metav1.NamespaceAll, fields.OneTermEqualSelector("metadata.name", "old")), &corev1.ConfigMap{}, 0,
		cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }, DeleteFunc: add},
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	go indexer.Run(ctx.Done())
	told := make(chan string)
	tell := func(name string, informer cache.SharedIndexInformer) {
		say := func(what string, obj any) {
			if key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); key == "default/old" {
				told <- name + " " + what
			}
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { say("added", obj) }, UpdateFunc: func(_, obj any) { say("changed", obj) },
			DeleteFunc: func(obj any) { say("deleted", obj) }})
		check(err)
		go informer.Run(ctx.Done())
		cache.WaitForCacheSync(ctx.Done(), informer.HasSynced, indexer.HasSynced)
	}
	tell("shared", shared.Core().V1().ConfigMaps().Informer())
	tell("dynamic", untyped.ForResource(configMaps).Informer())
	tell("metadata", meta.ForResource(configMaps).Informer())
	api := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	cm, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "old"}}, metav1.CreateOptions{})
	say := func(err error) {
		check(err)
		seen := map[string]bool{}
		for range 3 {
			seen[<-told] = true
		}
		key, _ := queue.Get()
		queue.Done(key)
		fmt.Println(seen, "and in the queue:", key)
	}
	say(err)
	cm.Data = map[string]string{"x": "y"}
	_, err = api.Update(ctx, cm, metav1.UpdateOptions{})
	say(err)
	say(api.Delete(ctx, "old", metav1.DeleteOptions{}))
}

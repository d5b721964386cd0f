package client

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	listwatch "listwatch/chapters/09-listwatch"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/eventually"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/mvcc"
)

// serveMany serves n pods with our server half over loopback, until the test ends.
func serveMany(tb testing.TB, n int) *httptest.Server {
	tb.Helper()
	codec, err := etcd3.NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, etcd3.MediaTypeProtobuf)
	if err != nil {
		tb.Fatal(err)
	}
	store := mvcc.New(clock.RealClock{})
	for _, pod := range benchPods(n, 1) {
		pod.ResourceVersion = ""
		data, err := apiruntime.Encode(codec, pod)
		if err != nil {
			tb.Fatal(err)
		}
		store.Put("/registry/pods/"+pod.Namespace+"/"+pod.Name, data)
	}
	server, err := pipeline.NewServer(pipeline.ServerConfig{Client: store, Clock: clock.RealClock{}, UseWatchList: true})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { server.Run(ctx) })
	if err := server.WaitReady(ctx); err != nil {
		tb.Fatal(err)
	}
	front := httptest.NewServer(server.Handler())
	tb.Cleanup(func() {
		eventually.Closes(front)
		cancel()
		running.Wait()
	})
	return front
}

// overHTTP starts an informer of either side against front, and returns its handler and how to stop it.
func overHTTP(tb testing.TB, ours, watchList bool, front string, want int64) (*counting, func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	handler := &counting{want: want, done: make(chan struct{})}
	var running sync.WaitGroup
	transport := &http.Transport{}
	if ours {
		base, err := url.Parse(front)
		if err != nil {
			tb.Fatal(err)
		}
		client := listwatch.NewRESTClient(listwatch.Config{Base: base, HTTP: &http.Client{Transport: transport}, Clock: clock.RealClock{}, QPS: -1})
		i := informer.NewSharedIndexInformer(informer.Config{
			ListerWatcher: listwatch.NewListWatch(client, "pods", metav1.NamespaceAll, nil), ExampleObject: &corev1.Pod{}, Clock: clock.RealClock{},
			Indexers: indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc}, UseWatchList: watchList,
		})
		i.AddEventHandler(handler)
		running.Go(func() { i.Run(ctx) })
	} else {
		useGates(mode{watchList: watchList})
		config := &rest.Config{Host: front, QPS: -1, Transport: transport, ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}}
		clientset, err := kubernetes.NewForConfig(config)
		if err != nil {
			tb.Fatal(err)
		}
		i := informers.NewSharedInformerFactory(clientset, 0).Core().V1().Pods().Informer()
		i.AddEventHandler(handler)
		running.Go(func() { i.RunWithContext(ctx) })
	}
	return handler, func() {
		cancel()
		running.Wait()
		transport.CloseIdleConnections()
	}
}

// BenchmarkInitialSyncOverHTTP is the start of an informer on a hundred thousand pods of our server half, with
// everything in between: the watch cache, the encoding, loopback, the decoding. Both sides read JSON.
func BenchmarkInitialSyncOverHTTP(b *testing.B) {
	front := serveMany(b, manyPods)
	for _, watchList := range []bool{false, true} {
		b.Run(fmt.Sprintf("watch-list=%v", watchList), func(b *testing.B) {
			sync := func(ours bool) func(b *testing.B) {
				return func(b *testing.B) {
					measureSync(b, func() (*counting, func()) { return overHTTP(b, ours, watchList, front.URL, manyPods) })
				}
			}
			bothSides(b, sync(true), sync(false))
		})
	}
}

// TestBothSyncAgainstOurServer is the benchmark as a test, small enough for every run.
func TestBothSyncAgainstOurServer(t *testing.T) {
	front := serveMany(t, 3000)
	for _, ours := range []bool{true, false} {
		for _, watchList := range []bool{false, true} {
			t.Run(fmt.Sprintf("ours=%v,watch-list=%v", ours, watchList), func(t *testing.T) {
				handler, stop := overHTTP(t, ours, watchList, front.URL, 3000)
				defer stop()
				select {
				case <-handler.done:
				case <-time.After(time.Minute):
					t.Fatalf("got %d of 3000 pods in a minute", handler.told.Load())
				}
			})
		}
	}
}

package pipeline

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a whole pipeline in a bubble: the small etcd below it, pipes instead of sockets in its middle.
type world struct {
	*Pipeline
	client *listwatch.RESTClient // the reader's kubectl
	log    *probe.Log
	stop   func() // ends everything and returns when it has ended
}

// inWorld runs body in a bubble with a running pipeline.
func inWorld(t *testing.T, change func(*ServerConfig, *ClientConfig), body func(t *testing.T, w *world)) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, change)
		defer w.stop()
		require.NoError(t, w.WaitReady(t.Context()))
		synctest.Wait()
		body(t, w)
	})
}

func newWorld(t *testing.T, change func(*ServerConfig, *ClientConfig)) *world {
	t.Helper()
	clk := clock.RealClock{} // the bubble's
	log := probe.NewLog(clk, 1<<16)
	listener := pipenet.Listen()
	httpClient := listener.Client()
	base := &url.URL{Scheme: "http", Host: "pipe"}
	serverConfig := ServerConfig{Client: mvcc.New(clk), Handler: apiserver.Handler(nil), Clock: clk,
		Probe: probe.New(log), UseWatchList: true}
	clientConfig := ClientConfig{Base: base, HTTP: httpClient, Clock: clk, Probe: probe.New(log), UseWatchList: true,
		Controllers: Controllers}
	if change != nil {
		change(&serverConfig, &clientConfig)
	}
	server := require.Value(NewServer(serverConfig))(t)
	clientConfig.Registry = server.Registry()
	client := require.Value(NewClient(clientConfig))(t)
	w := &world{Pipeline: &Pipeline{Server: server, Client: client}, log: log}
	w.client = listwatch.NewRESTClient(listwatch.Config{Base: base, HTTP: httpClient, Clock: clk, QPS: -1,
		UserAgent: "test"})
	stop := bubble.Go(t, "pipeline.Run", func(ctx context.Context) { w.Run(ctx, serveOn(listener, server.Handler())) })
	w.stop = func() {
		httpClient.CloseIdleConnections()
		stop()
	}
	return w
}

// serveOn returns a front for Pipeline.Run.
func serveOn(listener net.Listener, handler http.Handler) func(context.Context) {
	return func(ctx context.Context) {
		server := &http.Server{Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx }}
		new(routine.Group).Go(ctx, "test.server", func(context.Context) { server.Serve(listener) })
		<-ctx.Done()
		server.Shutdown(context.WithoutCancel(ctx))
	}
}

func (w *world) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	require.NoError(t, w.client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
}

// get returns a pod, or nil if there is none.
func (w *world) get(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := w.client.Get().Namespace("default").Resource("pods").Name(name).Do(t.Context()).Into(pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return pod
}

func podNamed(name string, restart corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "c",
			Image: "example.com/c"}}},
	}
}

// slowEtcd takes a moment to list, so that the caches of the server half take one to be ready.
type slowEtcd struct{ *mvcc.Store }

func (e slowEtcd) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse,
	error) {
	time.Sleep(100 * time.Millisecond)
	return e.Store.List(ctx, prefix, opts)
}

// TestNoClientIsSentAwayAtTheStart: a client of our own that is answered 429 comes back a second later.
func TestNoClientIsSentAwayAtTheStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *ServerConfig, _ *ClientConfig) { s.Client = slowEtcd{mvcc.New(s.Clock)} })
		defer w.stop()
		require.NoError(t, w.WaitReady(t.Context()))
		synctest.Wait() // a handler reports its answer after the client has read it
		answered := probetest.Records(w.log, probe.RequestAnswered)
		assert.True(t, len(answered) != 0, "no request was answered")
		for _, r := range answered {
			assert.True(t, r.Args[0] != http.StatusTooManyRequests, "429: %s", r.Sentence())
		}
	})
}

func TestAPodIsScheduledRunsAndGoes(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.create(t, podNamed("a", corev1.RestartPolicyAlways))
		time.Sleep(time.Minute)
		pod := w.get(t, "a")
		require.True(t, pod != nil && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning &&
			pod.Status.PodIP != "", "a minute after its creation: got %+v", pod)
		held, err := w.Client.Pods().Lister().Namespace("default").Get("a")
		require.True(t, err == nil && len(pod.ManagedFields) != 0,
			"the informer has no such pod, %v, or the server notes no managers: %v", err, pod.ManagedFields)
		pod.ManagedFields = nil // which no informer keeps
		assert.True(t, equality.Semantic.DeepEqual(held, pod), "the informer holds %+v, the server %+v", held, pod)
		require.NoError(t, w.client.Delete().Namespace("default").Resource("pods").Name("a").Do(t.Context()).Error())
		time.Sleep(time.Minute)
		assert.Equal(t, nil, w.get(t, "a"), "a minute after its deletion")
	})
}

// receivedSince returns what each reflector of the client half received of pods, "ADDED r1" being the version first.
func (w *world) receivedSince(first uint64) map[string][]string {
	received := map[string][]string{}
	for _, r := range probetest.Records(w.log, probe.ReflectorReceived) {
		if r.Resource == "pods" && r.Subject != "cacher" && r.Type != "BOOKMARK" {
			received[r.Subject] = append(received[r.Subject], fmt.Sprintf("%s r%d", r.Type, r.RV-first+1))
		}
	}
	return received
}

// TestAfterABurstTheShelvesAreKnownAgain: of many objects a picture keeps the number only. When few are left, their
// names come as records, from the store itself.
func TestAfterABurstTheShelvesAreKnownAgain(t *testing.T) {
	inWorld(t, func(_ *ServerConfig, c *ClientConfig) { c.Controllers = nil }, func(t *testing.T, w *world) {
		for n := range 40 {
			w.create(t, podNamed(fmt.Sprintf("p%02d", n), corev1.RestartPolicyAlways))
		}
		for n := 2; n < 40; n++ {
			deletion := w.client.Delete().Namespace("default").Resource("pods").Name(fmt.Sprintf("p%02d", n)).
				VersionedParams(&metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			require.NoError(t, deletion.Do(t.Context()).Error())
		}
		state := fold.New()
		look := func() (store, indexer *fold.Shelf) {
			synctest.Wait()
			records, ok := w.log.Since(nil, state.Seq, 1<<16)
			require.True(t, ok, "the log has moved on")
			state.Apply(records)
			pods := state.Resources["pods"]
			return pods.Shelves[fold.ShelfName(probe.Store, "cacher")],
				pods.Shelves[fold.ShelfName(probe.Indexer, "informer")]
		}
		if store, indexer := look(); store.N+indexer.N != 4 || len(store.Rows)+len(indexer.Rows) != 0 {
			t.Errorf("after the burst: got %+v and %+v, want two objects each, without names", store, indexer)
		}
		for resource, subject := range map[string]string{"pods": "cacher", "": "informer"} {
			w.Recount(resource, subject, 1)
		}
		if store, indexer := look(); len(store.Rows)+len(indexer.Rows) != 0 {
			t.Errorf("two objects were told although only one was to be: %v, %v", store.Rows, indexer.Rows)
		}
		w.Recount("pods", "cacher", fold.MaxRows)
		w.Recount("pods", "informer", fold.MaxRows)
		store, indexer := look()
		for name, shelf := range map[string]*fold.Shelf{"store": store, "indexer": indexer} {
			keys := []string{}
			for _, row := range shelf.Rows {
				keys = append(keys, probe.ObjectKey(row.Key))
			}
			assert.Equal(t, "2 [default/p00 default/p01]", fmt.Sprint(shelf.N, keys), name)
		}
	})
}

func TestADeletedNamespaceTakesItsContentAlong(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		namespaces := func() *corev1.Namespace {
			namespace := &corev1.Namespace{}
			err := w.client.Get().Resource("namespaces").Name("n").Do(t.Context()).Into(namespace)
			if apierrors.IsNotFound(err) {
				return nil
			}
			require.NoError(t, err)
			return namespace
		}
		must := func(err error) {
			t.Helper()
			require.NoError(t, err)
		}
		pod := podNamed("a", corev1.RestartPolicyAlways)
		err := w.client.Post().Namespace("n").Resource("pods").Body(pod).Do(t.Context()).Error()
		assert.Fails(t, err, apierrors.IsNotFound, "before the namespace is there")
		must(w.client.Post().Resource("namespaces").Body(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}).
			Do(t.Context()).Error())
		must(w.client.Post().Namespace("n").Resource("pods").Body(pod).Do(t.Context()).Error())
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		must(w.client.Post().Namespace("n").Resource("configmaps").Body(configMap).Do(t.Context()).Error())
		time.Sleep(time.Minute) // the pod runs: it will need time to stop
		must(w.client.Delete().Resource("namespaces").Name("n").Do(t.Context()).Error())
		if namespace := namespaces(); namespace == nil || namespace.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("just deleted: got %+v, want Terminating", namespace)
		}
		time.Sleep(time.Minute)
		assert.Equal(t, nil, namespaces(), "a minute later")
		var pods corev1.PodList
		must(w.client.Get().Resource("pods").Do(t.Context()).Into(&pods))
		assert.Equal(t, 0, len(pods.Items), "pods")
	})
}

func TestTheMetricsOfClientsAndCachesAreServed(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		answer := httptest.NewRecorder()
		w.Server.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range []string{
			`rest_client_requests_total{code="200",host="pipe",method="GET"} `,
			`rest_client_request_duration_seconds_count{host="pipe",verb="POST"} `,
			`rest_client_request_size_bytes_count{host="pipe",verb="POST"} `,
			`apiserver_current_inflight_requests{request_kind="readOnly"} `,
			`watch_cache_capacity{group="",resource="pods"} `,
			`watch_cache_capacity{group="",resource="configmaps"} `,
		} {
			assert.True(t, strings.Contains(answer.Body.String(), line), "no line begins with %s in\n%s", line,
				answer.Body)
		}
	})
}

package sandbox

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a whole pipeline with its sandbox in a bubble: the small etcd below it, pipes instead of sockets in its
// middle.
type world struct {
	*Sandbox
	pipeline *pipeline.Pipeline
	client   *listwatch.RESTClient // a kubectl
	store    *mvcc.Store
	log      *probe.Log
	stop     func() // ends everything and returns when it has ended
}

// inWorld runs body in a bubble with a running pipeline.
func inWorld(t *testing.T, change func(*Config, *pipeline.ClientConfig), body func(t *testing.T, w *world)) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, change)
		defer w.stop()
		require.NoError(t, w.pipeline.WaitReady(t.Context()))
		time.Sleep(time.Minute) // a kubelet that came before the server was ready tries again
		synctest.Wait()
		body(t, w)
	})
}

func newWorld(t *testing.T, change func(*Config, *pipeline.ClientConfig)) *world {
	t.Helper()
	clk := clock.RealClock{} // the bubble's
	log := probe.NewLog(clk, 1<<16)
	listener := pipenet.Listen()
	httpClient := listener.Client()
	base := &url.URL{Scheme: "http", Host: "pipe"}
	p, store := probe.New(log), mvcc.New(clk)
	server, err := pipeline.NewServer(pipeline.ServerConfig{Client: store, Handler: apiserver.Handler(nil), Clock: clk,
		Probe: p, UseWatchList: true})
	require.NoError(t, err)
	connections := NewConnections(httpClient, nil)
	clientConfig := pipeline.ClientConfig{
		Base: base, HTTP: connections.Client, Clock: clk, Probe: p, UseWatchList: true,
		Controllers: pipeline.Controllers,
		Registry:    server.Registry(),
	}
	config := Config{Connections: connections, Base: base, Clock: clk, Probe: p, Gate: log.Gate()}
	if change != nil {
		change(&config, &clientConfig)
	}
	client := require.Value(pipeline.NewClient(clientConfig))(t)
	config.Pipeline = &pipeline.Pipeline{Server: server, Client: client}
	w := &world{pipeline: config.Pipeline, store: store, log: log}
	w.Sandbox = require.Value(New(config))(t)
	w.client = listwatch.NewRESTClient(listwatch.Config{Base: base, HTTP: httpClient, Clock: clk, QPS: -1,
		UserAgent: "test"})
	stop := bubble.Go(t, "test.pipeline", func(ctx context.Context) {
		w.pipeline.Run(ctx, serveOn(listener, server.Handler()), w.Sandbox.Run)
	})
	w.stop = func() {
		log.Gate().End() // as the program does
		httpClient.CloseIdleConnections()
		stop()
	}
	return w
}

// serveOn returns a front for Pipeline.Run.
func serveOn(listener net.Listener, handler http.Handler) func(context.Context) {
	return func(ctx context.Context) {
		server := &http.Server{Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx }}
		go server.Serve(listener)
		<-ctx.Done()
		server.Shutdown(context.WithoutCancel(ctx))
	}
}

func (w *world) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	require.NoError(t, w.client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
}

func podNamed(name string, restart corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "c",
			Image: "example.com/c"}}},
	}
}

// The demo begins when its viewer has come.
func TestTheDemoRestsWhileAStoryIsTold(t *testing.T) {
	var viewed chan struct{}
	awaits := func(s *Config, _ *pipeline.ClientConfig) {
		viewed = make(chan struct{})
		s.Demo, s.Awaited = true, viewed
	}
	inWorld(t, awaits, func(t *testing.T, w *world) {
		commits := func(d time.Duration) (n int) {
			synctest.Wait()
			last := w.log.Last()
			time.Sleep(d)
			synctest.Wait()
			records, _ := w.log.Since(nil, last, 1<<16)
			for _, r := range records {
				if r.Point == probe.TxnCommitted && r.Resource == "pods" {
					n++
				}
			}
			return n
		}
		n := commits(time.Minute)
		assert.Equal(t, 0, n, "without a viewer the demo changed pods %d times", n)
		close(viewed)
		n = commits(time.Minute)
		require.True(t, n >= 8, "in a minute the demo changed pods %d times: it does not run", n)
		require.NoError(t, w.Play(t.Context(), "alone", func(*Run) error {
			assert.Equal(t, 0, len(require.Value(w.listPods(t.Context()))(t).Items), "beside a story there are pods")
			assert.Equal(t, 0, commits(time.Minute), "beside a story pods change")
			return nil
		}))
		n = commits(time.Minute)
		assert.True(t, n >= 4, "in the minute after a story the demo changed pods %d times", n)
	})
}

package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	cacher "listwatch/chapters/06-cacher"
	listwatch "listwatch/chapters/09-listwatch"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/rules"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a whole pipeline with its sandbox in a bubble, with an etcd in memory, and with pipes instead of sockets.
type world struct {
	*Sandbox
	pipeline *pipeline.Pipeline
	client   *listwatch.RESTClient // outside of the client half, like kubectl
	store    *mvcc.Store
	log      *probe.Log
	stop     func() // ends the pipeline and waits for it
}

// inWorld runs body in a bubble with a running pipeline. change, unless nil, first adjusts the configurations.
func inWorld(t *testing.T, change func(*Config, *pipeline.ClientConfig), body func(t *testing.T, w *world)) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, change)
		defer w.stop()
		require.NoError(t, w.pipeline.WaitReady(t.Context()))
		time.Sleep(time.Minute) // a kubelet that met an unready server retries within this time
		synctest.Wait()
		body(t, w)
	})
}

func newWorld(t *testing.T, change func(*Config, *pipeline.ClientConfig)) *world {
	t.Helper()
	clk := clock.RealClock{} // the bubble's clock
	log := probe.NewLog(clk, 1<<16)
	var network pipenet.Network
	httpClient := network.Client()
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
	config := Config{Connections: connections, Base: base, Clock: clk, Probe: p, Gate: log.Gate(), Log: log}
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
		w.pipeline.Run(ctx, func(ctx context.Context) {
			network.Serve(ctx, server.Handler(), func(err error) { t.Error(err) })
		}, w.Run)
	})
	w.stop = func() {
		log.Gate().End() // the program does the same
		httpClient.CloseIdleConnections()
		stop()
	}
	return w
}

func (w *world) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	require.NoError(t, w.client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
}

func TestTheDemoRestsWhileAStoryIsTold(t *testing.T) {
	demo := func(s *Config, _ *pipeline.ClientConfig) { s.Demo = true }
	inWorld(t, demo, func(t *testing.T, w *world) {
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
		require.True(t, n >= 8, "in a minute the demo changed pods %d times: it does not run", n)
		require.NoError(t, w.Play(t.Context(), "alone", func(*Run) error {
			assert.Equal(t, 0, len(require.Value(w.listPods(t.Context()))(t).Items), "beside a story there are pods")
			assert.Equal(t, 0, commits(time.Minute), "beside a story pods change")
			return nil
		}))
		n = commits(time.Minute)
		assert.True(t, n >= 4, "in the minute after a story the demo changed pods %d times", n)

		// The demo rests after a viewer's change, but not after a change by a program with a similar name.
		acts := func(agent, path string) (n int) {
			r := require.Value(http.NewRequest(http.MethodPost, w.config.Base.String()+path, http.NoBody))(t)
			r.Header.Set("User-Agent", agent)
			require.Value(w.config.Connections.Client.Do(r))(t).Body.Close() // the request counts, whatever its status
			last := w.log.Last()
			time.Sleep(demoPeriod)
			synctest.Wait()
			records, _ := w.log.Since(nil, last, 1<<16)
			for _, r := range records {
				if r.Point == probe.RequestReceived && r.Texts.Get(probe.FieldAgent) == Demo {
					n++
				}
			}
			return n
		}
		const pods = "/api/v1/namespaces/default/pods"
		assert.Equal(t, 0, acts("kubectl/v1.35", pods), "requests of the demo in the ten seconds after kubectl's")
		assert.True(t, acts("kubectls/v1", pods) > 0, "the demo rests after a program's write")
		assert.True(t, acts("kubectl/v1.35", pods+"/a/status") > 0, "the demo rests after a write of a status")
		assert.Equal(t, 0, acts(WatcherAgent+"1", pods), "requests of the demo in the ten seconds after the console's")
		assert.True(t, acts("Go-http-client/1.1", pods) > 0, "the demo does not go on")
	})
}

// TestThePictureNeverLies runs the demo and three watchers. Whenever nothing happens, the fold of the log must equal
// the stations' own snapshots. No rule may be broken, and the demo must make changes but keep few pods.
func TestThePictureNeverLies(t *testing.T) {
	for _, fifo := range []string{"real", "delta"} {
		t.Run(fifo, func(t *testing.T) {
			change := func(s *Config, c *pipeline.ClientConfig) { s.Demo, c.FIFO = true, fifo }
			inWorld(t, change, func(t *testing.T, w *world) {
				for range 3 {
					w.addWatcher(t, WatcherOptions{Resource: "pods", Bookmarks: true})
				}
				state, checker, seq := fold.New(), rules.New(), uint64(0)
				for round := range 18 {
					if round == 4 {
						w.patch(t)
					}
					time.Sleep(7*time.Second + 350*time.Millisecond)
					synctest.Wait()
					records, ok := w.log.Since(nil, seq, 1<<16)
					require.True(t, ok, "the log has moved on")
					seq += uint64(len(records))
					state.Apply(records)
					for _, breach := range checker.Apply(records) {
						t.Error(breach)
					}
					comparePicture(t, state.Resources["pods"], w.pipeline.Snapshot())
				}
				s := w.pipeline.Snapshot()
				pods := s.Client.Informer.Indexer.Objects
				assert.True(t, pods != 0 && pods <= 3*demoPods, "after two minutes of demo: %d pods", pods)
				rv := cacheOfPods(s).Cache.ResourceVersion
				assert.True(t, rv >= 40, "after two minutes of demo the cache is at version %d", rv)
			})
		})
	}
}

// patch creates a pod and changes it a few times in a row, so that several events are under way at once.
func (w *world) patch(t *testing.T) {
	t.Helper()
	w.create(t, apitest.Pod("b", corev1.RestartPolicyAlways))
	for n := range 5 {
		body := fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, n)
		require.NoError(t, w.client.Patch(types.MergePatchType).Namespace("default").Resource("pods").Name("b").
			Body(body).Do(t.Context()).Error())
	}
}

func cacheOfPods(s pipeline.Snapshot) cacher.Snapshot {
	i := slices.IndexFunc(s.Server.Cachers, func(c cacher.Snapshot) bool { return c.Resource == "pods" })
	return s.Server.Cachers[i]
}

func comparePicture(t *testing.T, pods *fold.Resource, s pipeline.Snapshot) {
	t.Helper()
	cached, informer, scheduler := cacheOfPods(s), s.Client.Informer, s.Client.Unfinished
	compare := func(what string, picture int64, truth int) {
		t.Helper()
		assert.Equal(t, int64(truth), picture, "%s: the picture shows %d, the station has %d", what, picture, truth)
	}
	shelf := func(station probe.Station, subject string) int64 {
		return pods.Shelves[fold.ShelfName(station, subject)].N
	}
	length := func(subject, queue string) int64 {
		if queue := pods.Subjects[subject].Queues[queue]; queue != nil {
			return queue.Len
		}
		return 0
	}
	compare("the ring's start", pods.Ring.Start, int(cached.Cache.Start))
	compare("the ring's end", pods.Ring.End, int(cached.Cache.End))
	compare("the ring's capacity", pods.Ring.Capacity, cached.Cache.Capacity)
	compare("the ring's newest", int64(pods.Ring.Newest), int(cached.Cache.ResourceVersion))
	compare("objects on the store shelf", shelf(probe.Store, "cacher"), cached.Cache.Objects)
	compare("objects on the indexer shelf", shelf(probe.Indexer, "informer"), informer.Indexer.Objects)
	compare("objects on the shelf of the scheduler's indexer", shelf(probe.Indexer, "scheduler-informer"),
		scheduler.Indexer.Objects)
	compare("length of incoming", length("cacher", "incoming"), cached.IncomingLen)
	compare("length of the fifo", length("informer", "fifo"), informer.FIFO.Len)
	compare("length of the scheduler's workqueue", length("scheduler", "workqueue"), s.Client.Scheduler.Queue.Len)
	watchers := 0
	for id, subject := range pods.Subjects {
		if subject.Kind != "watcher" {
			continue
		}
		watchers++
		for name, queue := range subject.Queues {
			compare("length of "+name+" of "+id, queue.Len, 0)
		}
	}
	compare("watchers", int64(watchers), len(cached.Watchers))
	for _, listener := range append(informer.Listeners, scheduler.Listeners...) {
		compare("pending of "+listener.ID, length(listener.ID, "pending"), listener.PendingLen)
	}
	// While nothing happens, no goroutine is blocked, and the readers of the client's queues are idle.
	for key, waits := range pods.Waits {
		assert.Equal(t, string(probe.ForWork), waits[0].Kind, "the picture shows that %s waits for", key)
	}
	for _, key := range []string{"FIFOWaited informer", "WorkWaited scheduler"} {
		compare(key, int64(len(pods.Waits[key])), 1)
	}
}

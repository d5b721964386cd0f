package pipeline

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	cacher "listwatch/chapters/06-cacher"
	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/fold"
	"listwatch/internal/mvcc"
	"listwatch/internal/pipenet"
	"listwatch/internal/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a whole pipeline in a bubble: the small etcd below it, pipes instead of sockets in its middle.
type world struct {
	*Pipeline
	client *listwatch.RESTClient // somebody's kubectl
	log    *probe.Log
	stop   func() // ends everything and returns when it has ended
}

// inWorld runs body in a bubble with a running pipeline.
func inWorld(t *testing.T, change func(*ServerConfig, *ClientConfig), body func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, change)
		defer w.stop()
		if err := w.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // a kubelet that came before the server was ready tries again
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
	serverConfig := ServerConfig{Client: mvcc.New(clk), Clock: clk, Probe: probe.New(log), UseWatchList: true}
	clientConfig := ClientConfig{Base: base, HTTP: httpClient, Clock: clk, Probe: probe.New(log), UseWatchList: true, Controllers: true}
	if change != nil {
		change(&serverConfig, &clientConfig)
	}
	server, err := NewServer(serverConfig)
	if err != nil {
		t.Fatal(err)
	}
	clientConfig.Registry = server.Registry()
	client, err := NewClient(clientConfig)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Pipeline: &Pipeline{Server: server, Client: client}, log: log}
	w.client = listwatch.NewRESTClient(listwatch.Config{Base: base, HTTP: httpClient, Clock: clk, QPS: -1, UserAgent: "test"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}) // closed when Run has returned
	go func() {
		defer close(ended)
		w.Run(ctx, serveOn(listener, server.Handler()))
	}()
	w.stop = func() {
		httpClient.CloseIdleConnections()
		cancel()
		<-ended
	}
	return w
}

// serveOn returns a front for Pipeline.Run.
func serveOn(listener net.Listener, handler http.Handler) func(context.Context) {
	return func(ctx context.Context) {
		server := &http.Server{Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx }}
		go server.Serve(listener)
		<-ctx.Done()
		server.Shutdown(context.Background())
	}
}

func (w *world) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := w.client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// get returns a pod, or nil if there is none.
func (w *world) get(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := w.client.Get().Namespace("default").Resource("pods").Name(name).Do(t.Context()).Into(pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func podNamed(name string, restart corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
	}
}

func TestAPodIsScheduledRunsAndGoes(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.create(t, podNamed("a", corev1.RestartPolicyAlways))
		time.Sleep(time.Minute)
		pod := w.get(t, "a")
		if pod == nil || pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
			t.Fatalf("a minute after its creation: got %+v", pod)
		}
		if err := w.client.Delete().Namespace("default").Resource("pods").Name("a").Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if pod := w.get(t, "a"); pod != nil {
			t.Errorf("a minute after its deletion: got %+v", pod)
		}
	})
}

// follow opens a watch from now on, before there are pods, and notes what it is sent. The returned function ends the watch
// and returns the notes.
func (w *world) follow(t *testing.T, fieldSelector string) func() []string {
	t.Helper()
	options := metav1.ListOptions{FieldSelector: fieldSelector, ResourceVersion: "0"}
	stream, err := listwatch.NewListWatch(w.client, "pods", "", nil).Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for event := range stream.ResultChan() {
			notes = append(notes, string(event.Type)+" "+string(event.Object.(*corev1.Pod).Status.Phase))
		}
	})
	return func() []string {
		stream.Stop()
		reading.Wait()
		return notes
	}
}

// TestTheLifeOfOnePodIsSeenByEachWatcherInItsOwnWay is the story of the whole book: what everybody hears of a pod is
// the same history, through different selectors. Note what the DELETED of the scheduler carries: the last state that
// passed its selector. A deletion is two writes, even if there is no grace: first it is announced, by a timestamp, then it
// is done.
func TestTheLifeOfOnePodIsSeenByEachWatcherInItsOwnWay(t *testing.T) {
	watchers := []struct {
		who, fieldSelector string
		want               []string
	}{
		{"everybody", "", []string{"ADDED Pending", "MODIFIED Pending", "MODIFIED Pending", "MODIFIED Running", "MODIFIED Succeeded", "MODIFIED Succeeded", "DELETED Succeeded"}},
		{"its kubelet", "spec.nodeName=node-1", []string{"ADDED Pending", "MODIFIED Pending", "MODIFIED Running", "MODIFIED Succeeded", "MODIFIED Succeeded", "DELETED Succeeded"}},
		{"another kubelet", "spec.nodeName=node-2", nil},
		{"a scheduler", "status.phase!=Succeeded,status.phase!=Failed", []string{"ADDED Pending", "MODIFIED Pending", "MODIFIED Pending", "MODIFIED Running", "DELETED Running"}},
	}
	inWorld(t, nil, func(t *testing.T, w *world) {
		var stops []func() []string
		for _, watcher := range watchers {
			stops = append(stops, w.follow(t, watcher.fieldSelector))
		}
		w.create(t, podNamed("a", corev1.RestartPolicyNever))
		time.Sleep(time.Minute)
		if err := w.client.Delete().Namespace("default").Resource("pods").Name("a").Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, watcher := range watchers {
			if got := stops[i](); !slices.Equal(got, watcher.want) {
				t.Errorf("%s: got %q, want %q", watcher.who, got, watcher.want)
			}
		}
	})
}

// TestTheLifeOfOnePodIsTheSameHistoryToAllWhoRun says what the program's own four watchers of pods receive while a pod
// lives and dies: who, which type, which version. Nothing is left out and nothing comes twice. r1 is its creation, r2 its
// binding, then its kubelet writes: it has arrived (r3), it runs (r4), it has ended (r5). r6 and r7 are the deletion.
func TestTheLifeOfOnePodIsTheSameHistoryToAllWhoRun(t *testing.T) {
	want := map[string][]string{
		"informer":           {"ADDED r1", "MODIFIED r2", "MODIFIED r3", "MODIFIED r4", "MODIFIED r5", "MODIFIED r6", "DELETED r7"},
		"scheduler-informer": {"ADDED r1", "MODIFIED r2", "MODIFIED r3", "MODIFIED r4", "DELETED r5"},
		"kubelet-node-1":     {"ADDED r2", "MODIFIED r3", "MODIFIED r4", "MODIFIED r5", "MODIFIED r6", "DELETED r7"},
	}
	for _, fifo := range bothFIFOs {
		t.Run(fifo, func(t *testing.T) {
			inWorld(t, func(_ *ServerConfig, c *ClientConfig) { c.FIFO = fifo }, func(t *testing.T, w *world) {
				w.create(t, podNamed("a", corev1.RestartPolicyNever))
				time.Sleep(time.Minute)
				first, err := strconv.ParseUint(w.get(t, "a").ResourceVersion, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				first -= 4 // it stands at r5
				if err := w.client.Delete().Namespace("default").Resource("pods").Name("a").Do(t.Context()).Error(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(want, w.receivedSince(t, first)); diff != "" {
					t.Errorf("who received what (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// receivedSince returns what each reflector of the client half received of pods, "ADDED r1" being the version first.
func (w *world) receivedSince(t *testing.T, first uint64) map[string][]string {
	t.Helper()
	records, ok := w.log.Since(nil, 0, 1<<16)
	if !ok {
		t.Fatal("the log has moved on")
	}
	received := map[string][]string{}
	for _, r := range records {
		if r.Point == probe.ReflectorReceived && r.Resource == "pods" && r.Subject != "cacher" && r.Type != "BOOKMARK" {
			received[r.Subject] = append(received[r.Subject], fmt.Sprintf("%s r%d", r.Type, r.RV-first+1))
		}
	}
	return received
}

func TestAWatcherOfThePageComesAndGoes(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		before := len(w.Server.Snapshot().Cachers[3].Watchers)
		id, err := w.Client.Watchers.Add(t.Context(), WatcherOptions{Resource: "pods", LabelSelector: "app=a"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		watchers := w.Server.Snapshot().Cachers[3].Watchers
		if len(watchers) != before+1 || watchers[before].Text != "/registry/pods/ labels app=a" {
			t.Errorf("after Add: got %+v", watchers)
		}
		if err := w.Client.Watchers.Remove(id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := len(w.Server.Snapshot().Cachers[3].Watchers); got != before {
			t.Errorf("after Remove: got %d watchers, want %d", got, before)
		}
		if err := w.Client.Watchers.Remove(id); !apierrors.IsNotFound(err) {
			t.Errorf("removing it again: got %v, want NotFound", err)
		}
	})
}

func TestAWatcherOverAWebsocketIsSentWhatAnyOtherIs(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		id, err := w.Client.Watchers.Add(t.Context(), WatcherOptions{Resource: "pods", WebSocket: true, Bookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		w.create(t, podNamed("a", corev1.RestartPolicyAlways))
		synctest.Wait()
		var socket *listwatch.WireStream
		for _, stream := range w.Client.Wire() {
			if strings.Contains(stream.OpenedBy(), WatcherAgent) {
				socket = &stream
			}
		}
		if socket == nil || !strings.HasPrefix(socket.Header, "HTTP/1.1 101 ") || len(socket.Frames) == 0 {
			t.Fatalf("on the wire: %+v", socket)
		}
		// First that the state, which is empty, is complete, then the pod.
		for i, want := range []string{`{"type":"BOOKMARK","object":{"kind":"Pod"`, `{"type":"ADDED","object":{"kind":"Pod"`} {
			if got := socket.Frames[i]; got.Opcode != "text" || !strings.HasPrefix(got.Data, want) || !strings.HasPrefix(got.Head, "81 7e ") {
				t.Errorf("frame %d: got %+v, want %s", i, got, want)
			}
		}
		agent := w.Client.Watchers.List()[0].UserAgent
		if err := w.Turn(t.Context(), Knob{Name: "line.drop", Target: agent}); err != nil { // its line is like any other
			t.Fatal(err)
		}
		time.Sleep(2 * rewatchDelay)
		synctest.Wait()
		if err := w.Turn(t.Context(), Knob{Name: "line.drop", Target: agent}); err != nil {
			t.Errorf("it did not come back: %v", err)
		}
		if err := w.Client.Watchers.Remove(id); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAWatcherThatTheServerRefusesIsNotKept(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		_, err := w.Client.Watchers.Add(t.Context(), WatcherOptions{Resource: "pods", FieldSelector: "spec.colour=blue"})
		if !apierrors.IsBadRequest(err) {
			t.Errorf("got %v, want BadRequest", err)
		}
		if list := w.Client.Watchers.List(); len(list) != 0 {
			t.Errorf("kept %+v", list)
		}
	})
}

func TestTheDemoMovesAndStaysSmall(t *testing.T) {
	inWorld(t, func(_ *ServerConfig, c *ClientConfig) { c.Demo = true }, func(t *testing.T, w *world) {
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		pods := w.Snapshot().Client.Informer.Indexer.Objects
		if pods == 0 || pods > 3*demoPods {
			t.Errorf("after two minutes of demo: %d pods", pods)
		}
		if rv := w.Server.Snapshot().Cachers[3].Cache.ResourceVersion; rv < 100 {
			t.Errorf("after two minutes of demo the cache stands at %d", rv)
		}
	})
}

// TestThePictureNeverLies: whenever nothing happens, the fold of the log is what the stations say of themselves.
func TestThePictureNeverLies(t *testing.T) {
	for _, fifo := range []string{"real", "delta"} {
		t.Run(fifo, func(t *testing.T) {
			inWorld(t, func(_ *ServerConfig, c *ClientConfig) { c.FIFO, c.Demo = fifo, true }, func(t *testing.T, w *world) {
				state, seq := fold.New(), uint64(0)
				for round := range 8 {
					if round == 4 {
						w.patch(t)
					}
					time.Sleep(7*time.Second + 350*time.Millisecond)
					synctest.Wait()
					records, ok := w.log.Since(nil, seq, 1<<16)
					if !ok {
						t.Fatal("the log has moved on")
					}
					state.Apply(records)
					seq += uint64(len(records))
					comparePicture(t, state.Resources["pods"], w.Snapshot())
				}
			})
		})
	}
}

// patch creates a pod and changes it a few times in a row, so that something is in flight at the same time.
func (w *world) patch(t *testing.T) {
	t.Helper()
	w.create(t, podNamed("b", corev1.RestartPolicyAlways))
	for n := range 5 {
		body := fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, n)
		if err := w.client.Patch(types.MergePatchType).Namespace("default").Resource("pods").Name("b").Body(body).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
}

func comparePicture(t *testing.T, pods *fold.Resource, s Snapshot) {
	t.Helper()
	i := slices.IndexFunc(s.Server.Cachers, func(c cacher.Snapshot) bool { return c.Resource == "pods" })
	cached, informer := s.Server.Cachers[i], s.Client.Informer
	ring := pods.Ring
	if got, want := []int64{ring.Start, ring.End, ring.Capacity, int64(ring.Newest)},
		[]int64{int64(cached.Cache.Start), int64(cached.Cache.End), int64(cached.Cache.Capacity), int64(cached.Cache.ResourceVersion)}; !slices.Equal(got, want) {
		t.Errorf("ring start, end, capacity, newest: the picture shows %v, the cache says %v", got, want)
	}
	compareCount(t, "objects on the store shelf", pods.Shelves[fold.ShelfName(probe.Store, "cacher")].N, cached.Cache.Objects)
	compareCount(t, "objects on the indexer shelf", pods.Shelves[fold.ShelfName(probe.Indexer, "informer")].N, informer.Indexer.Objects)
	compareCount(t, "objects on the shelf of the scheduler's indexer", pods.Shelves[fold.ShelfName(probe.Indexer, "scheduler-informer")].N, s.Client.Unfinished.Indexer.Objects)
	compareCount(t, "length of incoming", pods.Subjects["cacher"].Queues["incoming"].Len, cached.IncomingLen)
	compareCount(t, "length of the fifo", pods.Subjects["informer"].Queues["fifo"].Len, informer.FIFO.Len)
	compareCount(t, "length of the scheduler's workqueue", pods.Subjects["scheduler"].Queues["workqueue"].Len, s.Client.Scheduler.Queue.Len)
	watchers := 0
	for id, subject := range pods.Subjects {
		if subject.Kind != "watcher" {
			continue
		}
		watchers++
		for name, queue := range subject.Queues {
			compareCount(t, "length of "+name+" of "+id, queue.Len, 0)
		}
	}
	compareCount(t, "watchers", int64(watchers), len(cached.Watchers))
	for _, listener := range append(informer.Listeners, s.Client.Unfinished.Listeners...) {
		compareCount(t, "pending of "+listener.ID, pendingOf(pods, listener.ID), listener.PendingLen)
	}
	compareWaits(t, pods)
}

// compareWaits holds that at a quiet moment nobody is held up, and that those who take from the client's queues say that
// they have nothing to do.
func compareWaits(t *testing.T, pods *fold.Resource) {
	t.Helper()
	for key, waits := range pods.Waits {
		if kind := waits[0].Kind; kind != string(probe.ForWork) {
			t.Errorf("the picture shows that %s waits for %q, while nothing happens", key, kind)
		}
	}
	for _, key := range []string{"FIFOWaited informer", "WorkWaited scheduler"} {
		compareCount(t, key, int64(len(pods.Waits[key])), 1)
	}
}

func pendingOf(pods *fold.Resource, id string) int64 {
	if queue := pods.Subjects[id].Queues["pending"]; queue != nil {
		return queue.Len
	}
	return 0
}

func compareCount(t *testing.T, what string, picture int64, truth int) {
	t.Helper()
	if picture != int64(truth) {
		t.Errorf("%s: the picture shows %d, the station says %d", what, picture, truth)
	}
}

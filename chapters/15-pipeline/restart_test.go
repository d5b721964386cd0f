package pipeline

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

// site is a server half that can be restarted.
type site struct {
	store    *mvcc.Store // etcd, which survives
	listener atomic.Pointer[pipenet.Listener]
	stop     func() // crashes the running server
	end      func() // the same, its streams: how an orderly end begins
	client   *listwatch.RESTClient
}

func (s *site) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.listener.Load().Dial(ctx, network, address)
}

// startServer starts a server half on what is in the store. Its caches know nothing of the past.
func (s *site) startServer(t *testing.T) {
	t.Helper()
	server := require.Value(NewServer(ServerConfig{Client: s.store, Handler: apiserver.Handler(nil),
		Clock: clock.RealClock{}, UseWatchList: true}))(t)
	listener := pipenet.Listen()
	s.listener.Store(listener)
	ctx, cancel := context.WithCancel(t.Context())
	var serverRuns sync.WaitGroup
	front := &crashingFront{handler: server.Handler()}
	httpServer := &http.Server{Handler: front, BaseContext: func(net.Listener) context.Context { return ctx }}
	serverRuns.Go(func() { server.Run(ctx) })
	serverRuns.Go(func() { _ = httpServer.Serve(listener) })
	s.end = server.EndStreams
	s.stop = func() {
		front.refuse()
		httpServer.Close() // a crash, as seen from outside: all connections break
		front.requests.Wait()
		cancel()
		serverRuns.Wait()
	}
	require.NoError(t, server.WaitReady(t.Context()))
	synctest.Wait() // no client sends a write, which cannot be tried again, over a connection that broke
}

// crashingFront passes requests on until it is told to refuse.
type crashingFront struct {
	handler  http.Handler
	requests sync.WaitGroup // forwarded requests that have not ended

	mu       sync.Mutex // guards refusing
	refusing bool
}

func (f *crashingFront) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusing = true
}

func (f *crashingFront) admit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.refusing {
		f.requests.Add(1)
	}
	return !f.refusing
}

func (f *crashingFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.admit() {
		panic(http.ErrAbortHandler)
	}
	defer f.requests.Done()
	f.handler.ServeHTTP(w, r)
}

// inTown runs body in a bubble with a server half that can be restarted, and the whole client half in front of it.
func inTown(t *testing.T, change func(*ClientConfig), body func(t *testing.T, s *site, w *world)) {
	bubble.Test(t, func(t *testing.T) {
		s := &site{store: mvcc.New(clock.RealClock{})}
		transport := &http.Transport{DialContext: s.dial}
		s.client = listwatch.NewRESTClient(listwatch.Config{Base: &url.URL{Scheme: "http", Host: "pipe"},
			HTTP: &http.Client{Transport: transport}, Clock: clock.RealClock{}, QPS: -1})
		s.startServer(t)
		log := probe.NewLog(clock.RealClock{}, 1<<16)
		config := ClientConfig{
			Base: &url.URL{Scheme: "http", Host: "pipe"}, HTTP: &http.Client{Transport: transport},
			Clock: clock.RealClock{},
			Probe: probe.New(log), UseWatchList: true, Controllers: Controllers,
		}
		change(&config)
		client := require.Value(NewClient(config))(t)
		stop := bubble.Go(t, "pipeline.Run", client.Run)
		defer func() {
			stop()
			s.stop()
		}()
		require.NoError(t, client.WaitReady(t.Context()))
		synctest.Wait() // the kubelets have created their nodes
		// Only a reader who wants the newest state lets the cache ask etcd how far it is: then bookmarks say that, too.
		require.NoError(t, s.client.Get().Resource("pods").Do(t.Context()).Error())
		time.Sleep(time.Minute) // every client is there, and has had a bookmark
		synctest.Wait()
		body(t, s, &world{client: s.client, log: log})
	})
}

// TestTheLifeOfOnePodIsTheSameHistoryAfterARestartOfTheServer says what the program's own watchers of pods receive
// while a pod lives and dies: who, which type, which version. r1 is its creation, r2 its binding, then its kubelet
// writes: it has arrived (r3), it runs (r4), it has ended (r5). r6 and r7 are the deletion.
//
// In all cases but the first the server half crashes in the middle: all connections break, and the new one's caches
// have forgotten the past. No controller remembers anything that does not stand in the pod, so the life goes on where
// it was, and what each of them receives of it is the same history, once: those who had seen the newest version go on
// from there, and those who had not are told so by 410, list, and find nothing new.
func TestTheLifeOfOnePodIsTheSameHistoryAfterARestartOfTheServer(t *testing.T) {
	ended := map[string][]string{
		"informer": {"ADDED r1", "MODIFIED r2", "MODIFIED r3", "MODIFIED r4", "MODIFIED r5", "MODIFIED r6",
			"DELETED r7"},
		"scheduler-informer": {"ADDED r1", "MODIFIED r2", "MODIFIED r3", "MODIFIED r4", "DELETED r5"},
		"kubelet-node-1":     {"ADDED r2", "MODIFIED r3", "MODIFIED r4", "MODIFIED r5", "MODIFIED r6", "DELETED r7"},
	}
	// A pod that is deleted while it runs has time to stop: r5 marks it, r6 ends its grace period, and r7 removes it.
	stopped := map[string][]string{
		"informer": ended["informer"],
		"scheduler-informer": {"ADDED r1", "MODIFIED r2", "MODIFIED r3", "MODIFIED r4", "MODIFIED r5", "MODIFIED r6",
			"DELETED r7"},
		"kubelet-node-1": ended["kubelet-node-1"],
	}
	for _, tc := range []struct {
		name           string
		restart        corev1.RestartPolicy
		crash          time.Duration // after its creation; 0: never
		delete, grace  time.Duration // after its creation
		crashOnceAgain time.Duration // after the first
		want           map[string][]string
	}{
		{"undisturbed", corev1.RestartPolicyNever, 0, time.Minute, 0, 0, ended},
		{"undisturbed, deleted while it runs", corev1.RestartPolicyAlways, 0, 30 * time.Second, 30 * time.Second, 0,
			stopped},
		{"when it has arrived", corev1.RestartPolicyNever, 500 * time.Millisecond, time.Minute, 0, 0, ended},
		{"while it runs", corev1.RestartPolicyNever, 5 * time.Second, time.Minute, 0, 0, ended},
		{"twice while it runs", corev1.RestartPolicyNever, 3 * time.Second, time.Minute, 0, 3 * time.Second, ended},
		{"when it has ended", corev1.RestartPolicyNever, 30 * time.Second, time.Minute, 0, 0, ended},
		{"while it stops", corev1.RestartPolicyAlways, 30*time.Second + 500*time.Millisecond, 30 * time.Second,
			30 * time.Second, 0, stopped},
	} {
		for _, fifo := range []string{informer.FIFOReal, informer.FIFODelta} {
			t.Run(tc.name+"/"+fifo, func(t *testing.T) {
				inTown(t, func(c *ClientConfig) { c.FIFO = fifo }, func(t *testing.T, s *site, w *world) {
					created := &corev1.Pod{}
					require.NoError(t, s.client.Post().Namespace("default").Resource("pods").Body(apitest.Pod("a",
						tc.restart)).Do(t.Context()).Into(created))
					first := require.Value(strconv.ParseUint(created.ResourceVersion, 10, 64))(t)
					crash := func(after time.Duration) {
						if time.Sleep(after); after > 0 {
							s.stop()
							s.startServer(t)
						}
					}
					remove := func() {
						deletion := s.client.Delete().Namespace("default").Resource("pods").Name("a").
							Body(metav1.NewDeleteOptions(int64(tc.grace / time.Second)))
						require.NoError(t, deletion.Do(t.Context()).Error())
					}
					if tc.delete < tc.crash {
						time.Sleep(tc.delete)
						remove()
						crash(tc.crash - tc.delete)
					} else {
						crash(tc.crash)
						crash(tc.crashOnceAgain)
						time.Sleep(tc.delete - tc.crash - tc.crashOnceAgain)
						remove()
					}
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					assert.Equal(t, nil, w.get(t, "a"), "in the end")
					got := w.receivedSince(first)
					// What node-2 has seen may be older than the new cache: it is told so, if no bookmark came in time.
					if strings.HasPrefix(strings.Join(got["kubelet-node-2"], ""), "ERROR") {
						delete(got, "kubelet-node-2")
					}
					assert.NoDiff(t, tc.want, got, "who received what")
				})
			})
		}
	}
}

// TestNoClientListsAgainWhenItsServerEnds lets the streams of a server end while it still takes connections: all
// clients come back to it at once. They are told to wait, and go on at the next server.
func TestNoClientListsAgainWhenItsServerEnds(t *testing.T) {
	inTown(t, func(*ClientConfig) {}, func(t *testing.T, s *site, w *world) {
		before := w.log.Last()
		s.end()
		time.Sleep(time.Second)
		s.stop()
		s.startServer(t)
		time.Sleep(time.Minute)
		records, _ := w.log.Since(nil, before, 1<<16)
		resumed := map[string]bool{}
		for _, r := range records {
			switch r.Point {
			case probe.ReflectorListed, probe.ReflectorSynced:
				t.Errorf("%s lists again", r.Subject)
			case probe.ReflectorWatching:
				resumed[r.Subject] = true
			}
		}
		assert.True(t, len(resumed) >= 2, "only %v have come back", resumed)
	})
}

// Events are forgotten an hour after they were reported last; nothing else is.
func TestEventsExpire(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, name := range []string{"a", "b"} {
			event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}}
			event.InvolvedObject.Namespace = "default"
			require.NoError(t, w.client.Post().Namespace("default").Resource("events").Body(event).Do(ctx).Error())
		}
		names := func() (names []string) {
			list := &corev1.EventList{}
			require.NoError(t, w.client.Get().Namespace("default").Resource("events").Do(ctx).Into(list))
			for _, event := range list.Items {
				names = append(names, event.Name)
			}
			return names
		}
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lasting"}}
		require.NoError(t, w.client.Post().Namespace("default").Resource("configmaps").Body(configMap).Do(ctx).Error())
		time.Sleep(30 * time.Minute)
		again := &corev1.Event{}
		require.NoError(t, w.client.Get().Namespace("default").Resource("events").Name("b").Do(ctx).Into(again))
		again.Count = 2
		require.NoError(t, w.client.Put().Namespace("default").Resource("events").Name("b").Body(again).Do(ctx).Error())
		assert.EqualSlices(t, []string{"a", "b"}, names(), "after half an hour")
		time.Sleep(35 * time.Minute)
		assert.EqualSlices(t, []string{"b"}, names(), "after an hour")
		time.Sleep(30 * time.Minute)
		assert.EqualSlices(t, nil, names(), "in the end")
		err := w.client.Get().Namespace("default").Resource("configmaps").Name("lasting").Do(ctx).Error()
		assert.True(t, err == nil, "what has no time to live: %v", err)
	})
}

// Bookmarks are the dispatcher's, and Events have none: their watch gets only the bookmark that ends the first state.
func TestAWatchWithoutACacheGetsOneBookmark(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		initial, timeout := true, int64(150)
		opts := metav1.ListOptions{
			SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
		}
		for resource, want := range map[string]bool{"configmaps": true, "events": false} {
			stream := require.Value(w.client.ListWatch(resource, "default", nil).Watch(t.Context(), opts))(t)
			configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "beside-" + resource}}
			require.NoError(t,
				w.client.Post().Namespace("default").Resource("configmaps").Body(configMap).Do(t.Context()).Error())
			bookmarks := 0
			for event := range stream.ResultChan() {
				if event.Type == watch.Bookmark {
					bookmarks++
				}
			}
			assert.True(t, bookmarks != 0 && bookmarks > 1 == want, "%s: %d bookmarks", resource, bookmarks)
		}
	})
}

package controllers

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	listwatch "listwatch/chapters/09-listwatch"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

// cluster is a server half with the kinds that controllers need, over an etcd in memory, served over pipes in a bubble;
// and whatever a test runs against it.
type cluster struct {
	t       *testing.T
	ctx     context.Context // done when the test ends
	running *routine.Group
	http    *http.Client
	client  *listwatch.RESTClient
	log     *probe.Log

	etcd       *mvcc.Store
	listener   atomic.Pointer[pipenet.Listener] // of the server that was started last
	stopServer func()
}

func inCluster(t *testing.T, body func(t *testing.T, c *cluster)) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := &cluster{t: t, ctx: ctx, running: &routine.Group{}, log: probe.NewLog(clock.RealClock{}, 0)}
		probetest.Story(t, c.log)
		c.etcd = mvcc.New(clock.RealClock{})
		c.startServer()
		// No connection is used twice: a pipe that the server closes during the next request breaks as no socket does.
		c.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: c.dial}}
		c.client = c.newClient("test")
		synctest.Wait() // the cache is filled
		body(t, c)
		cancel()
		c.stopServer()
		c.running.Wait()
	})
}

func (c *cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return c.listener.Load().Dial(ctx, network, address)
}

// startServer starts a server half on what etcd holds. stopServer ends it, with all its connections.
func (c *cluster) startServer() {
	ctx, cancel := context.WithCancel(c.ctx)
	var running routine.Group
	server, listener := &http.Server{Handler: c.serverHalf(ctx, &running)}, pipenet.Listen()
	c.listener.Store(listener)
	running.Go(ctx, "test.server", func(context.Context) { _ = server.Serve(listener) })
	c.stopServer = func() {
		_ = listener.Close()
		_ = server.Close()
		cancel()
		running.Wait()
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	require.NoError(c.t, err)
}

func (c *cluster) serverHalf(ctx context.Context, running *routine.Group) http.Handler {
	storages := map[string]handlers.Storage{}
	known := sets.New("pods", "nodes", "leases", "events", "replicasets", "deployments")
	for _, resource := range registry.Resources() {
		if !known.Has(resource.Name) || resource.GroupVersion == eventsv1.SchemeGroupVersion {
			continue
		}
		codec, err := etcd3.NewCodec(scheme.Codecs, resource.GroupVersion, etcd3.MediaTypeProtobuf)
		c.must(err)
		raw, err := etcd3.New(etcd3.Config{
			Client: c.etcd, Codec: codec, NewFunc: resource.NewFunc,
			ResourcePrefix: resource.Prefix, Clock: clock.RealClock{},
		})
		c.must(err)
		config := resource.CacherConfig()
		config.Clock, config.UseWatchList = clock.RealClock{}, true
		cacher, cached, err := registry.StorageWithCacher(raw, config)
		c.must(err)
		running.Go(ctx, "cacher", cacher.Run)
		maps.Copy(storages, handlers.Storages(registry.Config{Resource: resource, Storage: cached,
			Clock: clock.RealClock{}}))
	}
	return apiserver.Handler(nil)(handlers.Config{Storage: storages, Clock: clock.RealClock{}},
		prometheus.NewRegistry(), func() error { return nil })
}

func (c *cluster) newClient(name string) *listwatch.RESTClient {
	return listwatch.NewRESTClient(listwatch.Config{
		Base: &url.URL{Scheme: "http", Host: "cluster"}, HTTP: c.http, UserAgent: name, QPS: -1,
		Clock: clock.RealClock{},
	})
}

// informers returns a factory that runs with the test once start is called.
func (c *cluster) informers(tweak func(*metav1.ListOptions)) (f *informer.SharedInformerFactory, start func()) {
	f = informer.NewSharedInformerFactory(informer.FactoryConfig{
		Client: c.newClient("scheduler"), TweakListOptions: tweak, Clock: clock.RealClock{}, UseWatchList: true,
		Transform: StripManagedFields,
	})
	return f, func() {
		f.Start(c.ctx)
		c.running.Go(c.ctx, "factory.Shutdown", func(ctx context.Context) { <-ctx.Done(); f.Shutdown() })
	}
}

// schedule runs a scheduler with informers of its own, for node1 and node2 or for those named.
func (c *cluster) schedule(change func(*SchedulerConfig), names ...string) *Scheduler {
	c.t.Helper()
	if names == nil {
		names = []string{"node1", "node2"}
	}
	for _, name := range names {
		c.must(c.client.Post().Resource("nodes").Body(testNode(name, &corev1.NodeSpec{})).Do(c.ctx).Error())
	}
	pods, startPods := c.informers(SchedulerOptions)
	nodes, startNodes := c.informers(func(o *metav1.ListOptions) {
		if len(names) == 1 {
			o.FieldSelector = "metadata.name=" + names[0]
		}
	})
	config := SchedulerConfig{
		Client: c.newClient("scheduler"), Pods: pods.Pods(), Nodes: nodes.Nodes(), Clock: clock.RealClock{},
		Probe: probe.New(c.log).Subject("scheduler"),
	}
	if change != nil {
		change(&config)
	}
	scheduler, err := NewScheduler(config)
	c.must(err)
	c.running.Go(c.ctx, "scheduler", scheduler.Run)
	startPods()
	startNodes()
	return scheduler
}

// node runs a kubelet.
func (c *cluster) node(name string, change func(*KubeletConfig)) *Kubelet {
	config := KubeletConfig{
		NodeName: name, Client: c.newClient("kubelet-" + name), Clock: clock.RealClock{}, UseWatchList: true,
		Probe: probe.New(c.log).Subject("kubelet-" + name),
	}
	if change != nil {
		change(&config)
	}
	kubelet := NewKubelet(config)
	c.running.Go(c.ctx, "kubelet", kubelet.Run)
	return kubelet
}

// create creates a pod and returns it as the server answered.
func (c *cluster) create(name string, change func(*corev1.Pod)) *corev1.Pod {
	c.t.Helper()
	pod := testPod(name, change)
	pod.ResourceVersion, pod.UID, pod.Spec.NodeName = "", "", ""
	created := &corev1.Pod{}
	c.must(c.client.Post().Namespace("default").Resource("pods").Body(pod).Do(c.ctx).Into(created))
	return created
}

func (c *cluster) get(name string) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{}
	c.must(c.client.Get().Namespace("default").Resource("pods").Name(name).Do(c.ctx).Into(pod))
	return pod
}

func (c *cluster) delete(name string, options *metav1.DeleteOptions) {
	c.t.Helper()
	c.must(c.client.Delete().Namespace("default").Resource("pods").Name(name).Body(options).Do(c.ctx).Error())
}

// observer is one more client that watches, and keeps what it sees.
type observer struct {
	mu   sync.Mutex // guards seen
	seen []string   // "ADDED a 3"
}

// observe watches pods from now on.
func (c *cluster) observe(options func(*metav1.ListOptions)) *observer {
	c.t.Helper()
	lw := c.newClient("observer").ListWatch("pods", metav1.NamespaceAll, options)
	w, err := lw.Watch(c.ctx, metav1.ListOptions{ResourceVersion: "0"})
	c.must(err)
	o := &observer{}
	c.running.Go(c.ctx, "observer", func(context.Context) {
		for event := range w.ResultChan() { // until ctx is done
			o.see(event)
		}
	})
	return o
}

func (o *observer) see(event watch.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	object, err := meta.Accessor(event.Object)
	if err != nil {
		o.seen = append(o.seen, fmt.Sprintf("%s %v", event.Type, event.Object))
		return
	}
	o.seen = append(o.seen, fmt.Sprintf("%s %s %s", event.Type, object.GetName(), object.GetResourceVersion()))
}

// expect compares what was seen so far.
func (o *observer) expect(t *testing.T, who string, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	assert.EqualSlices(t, want, o.seen, "%s saw\n%q, want\n%q", who, o.seen, want)
}

func onNode(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" + name }
}

// settle lets the cluster run for d and come to rest.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestTheLifeOfOnePodIsKnownInAdvance is the story of the map: a pod that runs to its end. Who sees what, and as which
// type, follows from the selectors alone.
func TestTheLifeOfOnePodIsKnownInAdvance(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		all := c.observe(nil)
		scheduler := c.observe(SchedulerOptions)
		node1, node2 := c.observe(onNode("node1")), c.observe(onNode("node2"))
		c.schedule(nil)
		c.node("node1", nil)
		c.node("node2", nil)
		synctest.Wait()

		created := c.create("a", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
		settle(20 * time.Second)
		first := 0
		_, err := fmt.Sscan(created.ResourceVersion, &first)
		c.must(err)
		// r1 created, r2 bound, r3 arrived, r4 running, r5 succeeded
		rv := func(typ string, n int) string { return fmt.Sprintf("%s a %d", typ, first+n-1) }
		pod := c.get("a")
		require.True(t, pod.Status.Phase == corev1.PodSucceeded && pod.ResourceVersion == fmt.Sprint(first+4),
			"a is %s at %s, want Succeeded at %d", pod.Status.Phase, pod.ResourceVersion, first+4)
		// Nothing runs any more, so there is nothing to wait for. Still a deletion is two writes: r6 sets
		// deletionTimestamp, with a grace period of 0, and r7 is the end.
		c.delete("a", metav1.NewDeleteOptions(30))
		settle(time.Second)

		all.expect(t, "who watches all pods", rv("ADDED", 1), rv("MODIFIED", 2), rv("MODIFIED", 3), rv("MODIFIED", 4),
			rv("MODIFIED", 5), rv("MODIFIED", 6), rv("DELETED", 7))
		// To the scheduler's selector the pod is gone when it has succeeded, with the version of that change.
		scheduler.expect(t, "the scheduler", rv("ADDED", 1), rv("MODIFIED", 2), rv("MODIFIED", 3), rv("MODIFIED", 4),
			rv("DELETED", 5))
		// To its node it is new when it is bound.
		node1.expect(t, "node1", rv("ADDED", 2), rv("MODIFIED", 3), rv("MODIFIED", 4), rv("MODIFIED", 5),
			rv("MODIFIED", 6), rv("DELETED", 7))
		node2.expect(t, "node2")
	})
}

func TestAPodForAnotherSchedulerAndAGatedOneAreLeftAlone(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.schedule(nil)
		synctest.Wait()
		c.create("a", func(p *corev1.Pod) { p.Spec.SchedulerName = "none" })
		c.create("b", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} })
		settle(time.Minute)
		for _, name := range []string{"a", "b"} {
			assert.Equal(t, "", c.get(name).Spec.NodeName, "%s was bound to", name)
		}
	})
}

// TestPeopleAreToldWhatHasBecomeOfAPod: on a cordoned node there is no room until it is opened again; and a hundred
// pods more than that are not hundreds of events.
func TestPeopleAreToldWhatHasBecomeOfAPod(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		recorder := NewEventRecorder(c.newClient("events"), clock.RealClock{})
		c.running.Go(c.ctx, "recorder", recorder.Run)
		c.schedule(func(s *SchedulerConfig) { s.Recorder = recorder }, "node1")
		c.node("node1", func(k *KubeletConfig) { k.Recorder = recorder })
		cordon := func(cordoned bool) {
			node := &corev1.Node{}
			c.must(c.client.Get().Resource("nodes").Name("node1").Do(c.ctx).Into(node))
			node.Spec.Unschedulable = cordoned
			node.ResourceVersion = "" // the kubelet may have written its status since
			c.must(c.client.Put().Resource("nodes").Name("node1").Body(node).Do(c.ctx).Error())
			synctest.Wait()
		}
		cordon(true)
		c.create("a", nil)
		settle(time.Minute)
		cordon(false)
		settle(2 * time.Second)
		events := func() (told []string, n int) {
			list := &corev1.EventList{}
			c.must(c.client.Get().Resource("events").Do(c.ctx).Into(list))
			for _, e := range list.Items {
				if e.InvolvedObject.Name == "a" {
					told = append(told, fmt.Sprintf("%s %s %s %s", e.Source.Component, e.Type, e.Reason, e.Message))
				}
			}
			slices.Sort(told)
			return told, len(list.Items)
		}
		told, _ := events()
		assert.EqualSlices(t, []string{
			`default-scheduler Normal Scheduled Successfully assigned default/a to node1`,
			`default-scheduler Warning FailedScheduling 0/1 nodes are available: 1 node(s) were unschedulable.`,
			`kubelet Normal Pulled Container image "example.test/main:1" already present on machine`,
			`kubelet Normal Started Container started`,
		}, told)
		for i := range 100 {
			c.create(fmt.Sprint("p", i), nil)
		}
		settle(10 * time.Second)
		_, n := events()
		assert.True(t, n > eventBurst && n <= 4+eventBurst+10*eventQPS, "%d events for 101 pods", n)
	})
}

// TestAKubeletThatLooksAtAnOldStateIsRefused changes the pod while the kubelet waits to start it, in a way that its
// cache cannot know yet, and expects that no change is lost.
func TestAKubeletThatLooksAtAnOldStateIsRefused(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.schedule(nil)
		kubelet := c.node("node1", nil)
		synctest.Wait()
		c.create("a", nil)
		settle(500 * time.Millisecond) // arrived; the kubelet will start it at 1 s
		old := c.get("a")
		stale := old.DeepCopy()
		stale.Labels = map[string]string{"new": "label"}
		c.must(c.client.Put().Namespace("default").Resource("pods").Name("a").Body(stale).Do(c.ctx).Error())
		setRunning(&old.Status, old, "10.9.9.9", time.Now())
		assert.True(t, kubelet.updateStatus(c.ctx, old) != nil, "a status decided about an old state was accepted")
		settle(2 * time.Second)
		pod := c.get("a")
		assert.True(t, pod.Status.Phase == corev1.PodRunning && pod.Labels["new"] == "label" &&
			pod.Status.PodIP != "10.9.9.9", "a is %s with labels %v at %s", pod.Status.Phase, pod.Labels,
			pod.Status.PodIP)
	})
}

func TestAKubeletThatStartsAnewTakesUpWhatItFinds(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.schedule(nil)
		synctest.Wait()
		c.create("a", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
		c.create("b", nil)
		settle(time.Hour) // bound, but no kubelet is there
		c.node("node1", nil)
		c.node("node2", nil)
		settle(30 * time.Second)
		a, b := c.get("a"), c.get("b")
		assert.True(t, a.Status.Phase == corev1.PodSucceeded && b.Status.Phase == corev1.PodRunning,
			"a is %s and b is %s, want Succeeded and Running", a.Status.Phase, b.Status.Phase)
	})
}

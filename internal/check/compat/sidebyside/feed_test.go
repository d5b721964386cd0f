package sidebyside

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	realstorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/eventually"
	"listwatch/internal/observe/probe"
)

// feed is the storage below a measured cache: some pods, and then a benchmark's events. The sides get equal feeds.
type feed struct {
	pods   int
	nodes  int              // pod i runs on node i % nodes
	events chan watch.Event // newFeed and then the benchmark send; never closed
	rv     atomic.Uint64    // the version of the newest event
	made   []watch.Event    // filled by prepare; owned by the benchmark
}

func newFeed(pods, nodes int) *feed {
	f := &feed{pods: pods, nodes: nodes}
	// The channel holds the initial events, the bookmark after them, and as many more as etcd's watchChan holds.
	f.events = make(chan watch.Event, pods+1+100)
	for i := range pods {
		f.events <- watch.Event{Type: watch.Added, Object: f.pod(i, f.rv.Add(1))}
	}
	end := &corev1.Pod{}
	end.ResourceVersion = strconv.FormatUint(f.rv.Load(), 10)
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	f.events <- watch.Event{Type: watch.Bookmark, Object: end}
	return f
}

// pod returns pod number i at rv. The pod is about as large as a pod of a Deployment.
func (f *feed) pod(i int, rv uint64) *corev1.Pod {
	p := pod(fmt.Sprintf("ns%d/pod-%05d", i%10, i), fmt.Sprintf("app=app%d tier=web node=n%d", i%10, i%f.nodes))
	p.ResourceVersion = strconv.FormatUint(rv, 10)
	p.Annotations = map[string]string{"kubernetes.io/config.source": "api"}
	p.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "registry.k8s.io/pause:3.10",
		Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
	}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	return p
}

// prepare makes n events, and returns a function that sends them. Call the function before the next prepare.
func (f *feed) prepare(n int) (send func()) {
	f.made = f.made[:0]
	for range n {
		rv := f.rv.Load() + uint64(len(f.made)) + 1
		f.made = append(f.made, watch.Event{Type: watch.Modified, Object: f.pod(int(rv)%f.pods, rv)})
	}
	return func() {
		for _, event := range f.made {
			f.events <- event
		}
		f.rv.Add(uint64(n))
	}
}

// ResultChan and Stop make a feed a watch. open always returns the feed itself.
func (f *feed) ResultChan() <-chan watch.Event { return f.events }
func (f *feed) Stop()                          {}

func (f *feed) open() watch.Interface { return f }
func (f *feed) version() uint64       { return f.rv.Load() }

// source is a feed or a script. ourSource and theirSource make it a storage, whose other methods would panic.
type source interface {
	open() watch.Interface
	version() uint64
}

type ourSource struct {
	storage.Interface
	source
}

func (s ourSource) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return s.open(), nil
}
func (s ourSource) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return s.version(), nil
}
func (s ourSource) RequestWatchProgress(context.Context) error { return nil }

type theirSource struct {
	realstorage.Interface
	source
}

func (s theirSource) Watch(context.Context, string, realstorage.ListOptions) (watch.Interface, error) {
	return s.open(), nil
}
func (s theirSource) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return s.version(), nil
}
func (s theirSource) RequestWatchProgress(context.Context) error              { return nil }
func (s theirSource) EnableResourceSizeEstimation(realstorage.KeysFunc) error { return nil }
func (s theirSource) CompactRevision() int64                                  { return 0 }
func (s theirSource) ReadinessCheck() error                                   { return nil }
func (s theirSource) Versioner() realstorage.Versioner {
	return realstorage.APIObjectVersioner{}
}

// compareSides runs bench for both sides, each with a cache over a feed of its own.
func compareSides(b *testing.B, pods, nodes int, bench func(b *testing.B, f *feed, cache side)) {
	bothSides(b, func(b *testing.B) {
		f := newFeed(pods, nodes)
		bench(b, f, ours{newOurCache(b, ourSource{source: f}, nil)})
	}, func(b *testing.B) {
		f := newFeed(pods, nodes)
		bench(b, f, theirs{newTheirCache(b, theirSource{source: f})})
	})
}

// ringEvents are sent before a measurement. Both rings then have 12800 slots, and new watchers' channels 171.
const ringEvents = 10000

// BenchmarkFanOut sends each event to n watchers without selectors. An operation is one event.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("%d-watchers", n), func(b *testing.B) {
			compareSides(b, 1000, 1000, func(b *testing.B, f *feed, cache side) { fanOut(b, f, cache, n) })
		})
	}
}

// fanOut measures deliveries to n watchers. To stay cheap, a reader reports them only when its channel is empty.
func fanOut(b *testing.B, f *feed, cache side, n int) {
	fill(b, f, cache)
	c := newCrowd(n)
	ctx, cancel := context.WithCancel(context.Background())
	defer c.readers.Wait()
	defer cancel()
	for range n {
		w := must(cache.watch(ctx, query{rv: fmt.Sprint(f.rv.Load())}))
		c.readers.Go(func() {
			n := 0
			for range w.ResultChan() {
				if n++; len(w.ResultChan()) == 0 {
					c.report(n)
					n = 0
				}
			}
		})
	}
	c.measure(b, f.prepare)
}

// BenchmarkLatency measures the time from one event to its delivery to each of 1000 idle watchers. It reports the
// median and the 99th percentile of all deliveries.
func BenchmarkLatency(b *testing.B) {
	compareSides(b, 1000, 1000, func(b *testing.B, f *feed, cache side) {
		const n = 1000
		fill(b, f, cache)
		var took [n][]time.Duration // one reader appends to each
		var start time.Time         // written while all readers wait
		var arrived, readers sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		for i := range took {
			w := must(cache.watch(ctx, query{rv: fmt.Sprint(f.rv.Load())}))
			readers.Go(func() {
				for range w.ResultChan() {
					took[i] = append(took[i], time.Since(start))
					arrived.Done()
				}
			})
		}
		for b.Loop() {
			send := f.prepare(1)
			arrived.Add(n)
			start = time.Now()
			send()
			arrived.Wait()
		}
		cancel()
		readers.Wait()
		all := slices.Sorted(slices.Values(slices.Concat(took[:]...)))
		b.ReportMetric(float64(all[len(all)/2]), "p50-ns")
		b.ReportMetric(float64(all[len(all)*99/100]), "p99-ns")
	})
}

// BenchmarkReplay starts a watch at a version 10000 events ago and reads all these events.
func BenchmarkReplay(b *testing.B) {
	compareSides(b, 1000, 1000, func(b *testing.B, f *feed, cache side) {
		from := fmt.Sprint(f.rv.Load())
		fill(b, f, cache)
		defer reportCPU(b)()
		for b.Loop() {
			w := must(cache.watch(b.Context(), query{rv: from}))
			for range ringEvents {
				if event := <-w.ResultChan(); event.Type != watch.Modified { // require would take longer than the event
					b.Fatalf("got %v", event)
				}
			}
			w.Stop()
		}
	})
}

// fill sends events until the ring has its final size, and returns after the cache has received all of them.
func fill(b *testing.B, f *feed, cache side) {
	b.Helper()
	w := must(cache.watch(b.Context(), query{rv: fmt.Sprint(f.rv.Load())}))
	for sent := 0; sent < ringEvents; sent += 10 { // the first watchers have room for 10
		f.prepare(10)()
		for range 10 {
			<-w.ResultChan()
		}
	}
	w.Stop()
}

// BenchmarkProbes measures a fan-out with probes off and on. The three reports of a delivery take at least as long as
// the delivery itself, which only moves an event from one Go channel to another.
func BenchmarkProbes(b *testing.B) {
	for _, state := range []string{"off", "on"} {
		var p *probe.Probe
		if state == "on" {
			log := probe.NewLog(clock.RealClock{}, 0)
			log.LimitLoud(probe.LoudLanes, nil) // like the program: the log omits quiet lanes' records
			p = probe.New(log).Resource("pods")
		}
		for _, n := range []int{100, 1000} {
			b.Run(fmt.Sprintf("fan-out-%d/%s", n, state), func(b *testing.B) {
				f := newFeed(1000, 1000)
				fanOut(b, f, ours{newOurCache(b, ourSource{source: f}, p)}, n)
			})
		}
	}
}

// benchPods returns n pods in ten namespaces, on a hundred nodes.
func benchPods(n, rv int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprintf("namespace-%d", i%10), Name: fmt.Sprintf("pod-%06d", i),
				ResourceVersion: fmt.Sprint(rv + i), Labels: map[string]string{"app": fmt.Sprint(i % 7)},
			},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%100)},
		}
	}
	return pods
}

// channel is a cheap ListerWatcher for both sides. It returns one list, and its only watch is a channel.
type channel struct {
	list   *corev1.PodList
	events chan watch.Event
}

func newChannel(pods []*corev1.Pod) *channel {
	c := &channel{list: &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}},
		events: make(chan watch.Event, 1000)}
	for _, pod := range pods {
		c.list.Items = append(c.list.Items, *pod)
	}
	return c
}

func (c *channel) List(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	return c.list, nil
}
func (c *channel) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) { return c, nil }
func (c *channel) ResultChan() <-chan watch.Event                                     { return c.events }
func (c *channel) Stop()                                                              {}

// counting is a handler that counts its calls.
type counting struct {
	told atomic.Int64
	want int64
	done chan struct{} // closed after want calls
}

func (c *counting) count() {
	if c.told.Add(1) == c.want {
		close(c.done)
	}
}

func (c *counting) OnAdd(any, bool)   { c.count() }
func (c *counting) OnUpdate(_, _ any) { c.count() }
func (c *counting) OnDelete(any)      { c.count() }

// benchInformer is a measured informer: a function that adds a handler, and one that runs the informer.
type benchInformer struct {
	add func(*counting)
	run func(context.Context)
}

func ourInformer(c *channel, p *probe.Probe) benchInformer {
	i := informer.NewSharedIndexInformer(informer.Config{
		ListerWatcher: c, ExampleObject: &corev1.Pod{}, Clock: clock.RealClock{}, Probe: p,
		Indexers: indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
	})
	return benchInformer{add: func(c *counting) { must(i.AddEventHandler(c)) }, run: i.Run}
}

func upstreamInformer(b *testing.B, c *channel) benchInformer {
	useGates(b, mode{})
	i := cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: c.List, WatchFuncWithContext: c.Watch},
		&corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	return benchInformer{add: func(c *counting) { must(i.AddEventHandler(c)) }, run: i.RunWithContext}
}

// BenchmarkInformerEvents measures the time of an event from the watch to all handlers, an informer's most common work.
func BenchmarkInformerEvents(b *testing.B) {
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprintf("%d-handlers", n), func(b *testing.B) {
			bothSides(b, func(b *testing.B) {
				informerEvents(b, n, func(c *channel) benchInformer { return ourInformer(c, nil) })
			}, func(b *testing.B) {
				informerEvents(b, n, func(c *channel) benchInformer { return upstreamInformer(b, c) })
			})
		})
	}
}

// BenchmarkInformerProbes measures the time of an event from the watch to all handlers, with probes off and on.
func BenchmarkInformerProbes(b *testing.B) {
	for _, n := range []int{1, 10} {
		for state, p := range map[string]*probe.Probe{
			"off": nil, "on": probe.New(probe.NewLog(clock.RealClock{}, 0)).Resource("pods").Subject("informer"),
		} {
			b.Run(fmt.Sprintf("%d-handlers/%s", n, state), func(b *testing.B) {
				b.ReportAllocs()
				informerEvents(b, n, func(c *channel) benchInformer { return ourInformer(c, p) })
			})
		}
	}
}

// informerEvents sends b.N events and waits until all n handlers have received them.
func informerEvents(b *testing.B, n int, informerOf func(*channel) benchInformer) {
	pods, again := benchPods(1000, 1), benchPods(1000, 1001)
	c := newChannel(pods)
	i := informerOf(c)
	handlers := make([]*counting, n)
	for at := range handlers {
		handlers[at] = &counting{want: int64(len(pods) + b.N), done: make(chan struct{})}
		i.add(handlers[at])
	}
	bubble.Go(b, "test.informer", i.run)
	eventually.Holds(b, "the handlers have received the initial pods",
		func() bool { return handlers[n-1].told.Load() >= int64(len(pods)) })
	b.ResetTimer()
	report := reportCPU(b)
	for i := range b.N {
		version := again
		if i/len(pods)%2 == 1 {
			version = pods
		}
		c.events <- watch.Event{Type: watch.Modified, Object: version[i%len(pods)]}
	}
	for _, h := range handlers {
		<-h.done
	}
	report()
	b.StopTimer()
}

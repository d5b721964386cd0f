package client

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
	controllers "listwatch/chapters/14-controllers"
	"listwatch/internal/check/compat/ratios"
	"listwatch/internal/check/eventually"
	"listwatch/internal/observe/probe"
)

// bothSides runs two benchmarks side by side.
func bothSides(b *testing.B, ours, upstream func(b *testing.B)) {
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		ours(b)
	})
	b.Run("upstream", func(b *testing.B) {
		b.ReportAllocs()
		upstream(b)
	})
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

func anys(pods []*corev1.Pod) []any {
	objs := make([]any, len(pods))
	for i, pod := range pods {
		objs[i] = pod
	}
	return objs
}

// benchQueue is a queue of either side. pop takes one object, popBatch what the queue gives at once; it returns how many
// deltas that were.
type benchQueue struct {
	add      func(obj any) error
	pop      func()
	popBatch func() int
}

// none is a consumer's store that holds nothing.
type none struct{}

func (none) ListKeys() []string                 { return nil }
func (none) GetByKey(string) (any, bool, error) { return nil, false, nil }

func ourQueue(kind string) benchQueue {
	popped := 0
	process := func(deltas deltafifo.Deltas, _ bool) error { popped = len(deltas); return nil }
	if kind == "DeltaFIFO" {
		q := deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{KnownObjects: none{}, EmitDeltaTypeReplaced: true})
		return benchQueue{q.Add, func() { q.Pop(process) }, func() int { q.Pop(process); return popped }}
	}
	q := deltafifo.NewRealFIFO(deltafifo.RealFIFOOptions{
		AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true,
	})
	return benchQueue{q.Add, func() { q.Pop(process) }, func() int { q.PopBatch(process, process); return popped }}
}

func upstreamQueue(kind string) benchQueue {
	popped := 0
	process := func(deltas any, _ bool) error { popped = len(deltas.(cache.Deltas)); return nil }
	if kind == "DeltaFIFO" {
		q := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: none{}, EmitDeltaTypeReplaced: true})
		return benchQueue{q.Add, func() { q.Pop(process) }, func() int { q.Pop(process); return popped }}
	}
	q := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true,
	})
	batch := func(deltas []cache.Delta, _ bool) error { popped = len(deltas); return nil }
	return benchQueue{q.Add, func() { q.Pop(process) }, func() int { q.PopBatch(batch, process); return popped }}
}

// bothQueues runs bench with each kind of queue of each side.
func bothQueues(b *testing.B, bench func(b *testing.B, q benchQueue)) {
	for _, kind := range []string{"RealFIFO", "DeltaFIFO"} {
		b.Run(kind, func(b *testing.B) {
			bothSides(b, func(b *testing.B) { bench(b, ourQueue(kind)) }, func(b *testing.B) { bench(b, upstreamQueue(kind)) })
		})
	}
}

// BenchmarkQueueAddPop is the steady state of a queue: one in, one out.
func BenchmarkQueueAddPop(b *testing.B) {
	pod := podAt("a", 1)
	bothQueues(b, func(b *testing.B, q benchQueue) {
		for b.Loop() {
			q.add(pod)
			q.pop()
		}
	})
}

// BenchmarkQueueBurst is a thousand objects in, and then out, in batches where there are batches.
func BenchmarkQueueBurst(b *testing.B) {
	pods := benchPods(1000, 1)
	bothQueues(b, func(b *testing.B, q benchQueue) {
		var in time.Duration
		defer func() { b.ReportMetric(float64(in)/float64(b.N*len(pods)), "in-ns") }()
		for b.Loop() {
			began := time.Now()
			for _, pod := range pods {
				q.add(pod)
			}
			in += time.Since(began)
			for popped := 0; popped < len(pods); {
				popped += q.popBatch()
			}
		}
	})
}

// feed is a ListerWatcher that costs nothing: it lists one list, and its only watch is a channel.
type feed struct {
	list    *corev1.PodList
	initial []watch.Event // what a watch-list begins with
	events  chan watch.Event
}

func newFeed(pods []*corev1.Pod) *feed {
	f := &feed{list: &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, events: make(chan watch.Event, 1000)}
	for _, pod := range pods {
		f.list.Items = append(f.list.Items, *pod)
		f.initial = append(f.initial, watch.Event{Type: watch.Added, Object: pod})
	}
	f.initial = append(f.initial, watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}})
	return f
}

func (f *feed) List(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	return f.list, nil
}

func (f *feed) Watch(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	w := &feedWatch{events: f.events}
	w.stopped, w.stop = context.WithCancel(context.Background())
	if opts.SendInitialEvents != nil {
		go w.begin(f.initial)
	}
	return w, nil
}

type feedWatch struct {
	events  chan watch.Event
	stopped context.Context
	stop    context.CancelFunc
}

func (w *feedWatch) ResultChan() <-chan watch.Event { return w.events }
func (w *feedWatch) Stop()                          { w.stop() }

func (w *feedWatch) begin(initial []watch.Event) {
	for _, event := range initial {
		select {
		case w.events <- event:
		case <-w.stopped.Done():
			return
		}
	}
}

// upstreamFeed is a feed as client-go wants it.
type upstreamFeed struct{ *feed }

func (f upstreamFeed) List(opts metav1.ListOptions) (apiruntime.Object, error) {
	return f.feed.List(context.Background(), opts)
}

func (f upstreamFeed) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return f.feed.Watch(context.Background(), opts)
}

// counting is a handler that counts.
type counting struct {
	told atomic.Int64
	want int64
	done chan struct{} // closed when want calls have been told
}

func (c *counting) count() {
	if c.told.Add(1) == c.want {
		close(c.done)
	}
}

func (c *counting) OnAdd(any, bool)   { c.count() }
func (c *counting) OnUpdate(_, _ any) { c.count() }
func (c *counting) OnDelete(any)      { c.count() }

// subjectInformer is the informer that is measured: how to add a handler, and its Run.
type subjectInformer struct {
	add func(*counting)
	run func(context.Context)
}

// running starts an informer with n handlers that each wait to be told `want` times, and returns how to stop it.
func running(i subjectInformer, n int, want int64) (handlers []*counting, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}) // closed when the informer has ended
	for range n {
		handlers = append(handlers, &counting{want: want, done: make(chan struct{})})
		i.add(handlers[len(handlers)-1])
	}
	go func() {
		defer close(ended)
		i.run(ctx)
	}()
	return handlers, func() {
		cancel()
		<-ended
	}
}

func ourInformer(m mode, f *feed, p *probe.Probe) subjectInformer {
	cfg := informer.Config{
		ListerWatcher: f, ExampleObject: &corev1.Pod{}, Clock: clock.RealClock{}, Probe: p, UseWatchList: m.watchList,
		Indexers: indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
	}
	if m.delta {
		cfg.FIFO = informer.FIFODelta
	}
	i := informer.NewSharedIndexInformer(cfg)
	return subjectInformer{add: func(c *counting) { i.AddEventHandler(c) }, run: i.Run}
}

func upstreamInformer(m mode, f *feed) subjectInformer {
	useGates(m)
	i := cache.NewSharedIndexInformer(upstreamFeed{f}, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	return subjectInformer{add: func(c *counting) { i.AddEventHandler(c) }, run: i.RunWithContext}
}

// BenchmarkInformerEvents is one event from the watch to all handlers, an informer's daily bread.
func BenchmarkInformerEvents(b *testing.B) {
	pods, again := benchPods(1000, 1), benchPods(1000, 1001)
	for _, m := range []mode{{}, {delta: true}} {
		for _, n := range []int{1, 10} {
			b.Run(fmt.Sprintf("%s/%d-handlers", m.queue(), n), func(b *testing.B) {
				bothSides(b, func(b *testing.B) {
					f := newFeed(pods)
					informerEvents(b, f, pods, again, n, ourInformer(m, f, nil))
				}, func(b *testing.B) {
					f := newFeed(pods)
					informerEvents(b, f, pods, again, n, upstreamInformer(m, f))
				})
			})
		}
	}
}

// BenchmarkInformerProbes is what it costs to write every moment of it down.
func BenchmarkInformerProbes(b *testing.B) {
	pods, again := benchPods(1000, 1), benchPods(1000, 1001)
	for _, n := range []int{1, 10} {
		for _, state := range []string{"off", "on"} {
			b.Run(fmt.Sprintf("%d-handlers/%s", n, state), func(b *testing.B) {
				b.ReportAllocs()
				var p *probe.Probe
				if state == "on" {
					p = probe.New(probe.NewLog(clock.RealClock{}, 0)).Resource("pods").Subject("informer")
				}
				f := newFeed(pods)
				informerEvents(b, f, pods, again, n, ourInformer(mode{}, f, p))
			})
		}
	}
}

// informerEvents sends b.N events, each of pods or again, and waits until all n handlers have been told of all.
func informerEvents(b *testing.B, f *feed, pods, again []*corev1.Pod, n int, i subjectInformer) {
	handlers, stop := running(i, n, int64(len(pods)+b.N))
	eventually.Holds(b, "the handlers are told of the pods there are", func() bool { return handlers[n-1].told.Load() >= int64(len(pods)) })
	b.ResetTimer()
	cpu := ratios.CPUTime()
	for i := range b.N {
		version := again
		if i/len(pods)%2 == 1 {
			version = pods
		}
		f.events <- watch.Event{Type: watch.Modified, Object: version[i%len(pods)]}
	}
	for _, h := range handlers {
		<-h.done
	}
	b.ReportMetric(float64((ratios.CPUTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.StopTimer()
	stop()
}

const manyPods = 100_000

// BenchmarkInitialSync is the start of an informer on a hundred thousand pods, until its handler has been told of all
// of them. The pods are made beforehand, so what is measured is the machinery alone; peak-MB is how far the heap grew
// above what it was before, and held-MB is what is left of that after a garbage collection.
func BenchmarkInitialSync(b *testing.B) {
	pods := benchPods(manyPods, 1)
	for _, m := range []mode{{}, {watchList: true}, {delta: true}} {
		b.Run(m.String(), func(b *testing.B) {
			sync := func(informerOf func(f *feed) subjectInformer) func(b *testing.B) {
				return func(b *testing.B) {
					f := newFeed(pods)
					measureSync(b, func() (*counting, func()) {
						handlers, stop := running(informerOf(f), 1, manyPods)
						return handlers[0], stop
					})
				}
			}
			bothSides(b,
				sync(func(f *feed) subjectInformer { return ourInformer(m, f, nil) }),
				sync(func(f *feed) subjectInformer { return upstreamInformer(m, f) }))
		})
	}
}

// measureSync measures how long an informer takes to its first state, and how much memory. start starts one.
func measureSync(b *testing.B, start func() (handler *counting, stop func())) {
	b.ResetTimer()
	var peak, held float64
	for range b.N {
		b.StopTimer()
		before := heap(true)
		meter := startMeter()
		b.StartTimer()
		handler, stop := start()
		<-handler.done
		b.StopTimer()
		peak += megabytes(meter.stop() - before)
		held += megabytes(heap(true) - before)
		stop()
		runtime.KeepAlive(handler)
		b.StartTimer()
	}
	b.ReportMetric(peak/float64(b.N), "peak-MB")
	b.ReportMetric(held/float64(b.N), "held-MB")
}

func heap(collect bool) int64 {
	if collect {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func megabytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// meter looks at the heap every few milliseconds.
type meter struct {
	quit, ended chan struct{}
	peak        int64
}

func startMeter() *meter {
	m := &meter{quit: make(chan struct{}), ended: make(chan struct{})}
	go m.run()
	return m
}

func (m *meter) run() {
	defer close(m.ended)
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		m.peak = max(m.peak, heap(false))
		select {
		case <-ticker.C:
		case <-m.quit:
			return
		}
	}
}

// stop returns the peak.
func (m *meter) stop() int64 {
	close(m.quit)
	<-m.ended
	return max(m.peak, heap(false))
}

func nodeName(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }

func ourStore() *indexer.Cache {
	return indexer.NewIndexer(indexer.Config{Indexers: indexer.Indexers{"node": nodeName, indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc}})
}

func upstreamStore() cache.Indexer {
	return cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{"node": nodeName, cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// BenchmarkStore measures reads and writes of a store with 10,000 pods, 1,000 in each namespace and 100 on each node.
func BenchmarkStore(b *testing.B) {
	pods, again := benchPods(10_000, 1), benchPods(10_000, 10_001)
	objs := anys(pods)
	ours, upstream := ourStore(), upstreamStore()
	ours.Replace(objs, "1")
	upstream.Replace(objs, "1")
	b.Run("ListNamespace", func(b *testing.B) {
		resource := schema.GroupResource{Resource: "pods"}
		ourLister, theirLister := indexer.NewLister[*corev1.Pod](ours, resource), listers.NewPodLister(upstream)
		bothSides(b, func(b *testing.B) {
			for b.Loop() {
				ourLister.Namespace("namespace-3").List(labels.Everything())
			}
		}, func(b *testing.B) {
			for b.Loop() {
				theirLister.Pods("namespace-3").List(labels.Everything())
			}
		})
	})
	type store interface {
		ByIndex(name, value string) ([]any, error)
		GetByKey(key string) (any, bool, error)
		List() []any
		Add(obj any) error
		Update(obj any) error
		Delete(obj any) error
		Replace(objs []any, rv string) error
	}
	pod := podAt("new", 1)
	for _, act := range []struct {
		name string
		do   func(s store, i int)
	}{
		{"ByIndex", func(s store, _ int) { s.ByIndex("node", "node-7") }},
		{"GetByKey", func(s store, _ int) { s.GetByKey("namespace-7/pod-004567") }},
		{"List", func(s store, _ int) { s.List() }},
		{"Update", func(s store, i int) { s.Update(again[i%len(again)]) }},
		{"AddDelete", func(s store, _ int) { s.Add(pod); s.Delete(pod) }},
		{"Replace", func(s store, _ int) { s.Replace(objs, "1") }},
	} {
		of := func(s store) func(b *testing.B) {
			return func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					act.do(s, i)
				}
			}
		}
		b.Run(act.name, func(b *testing.B) { bothSides(b, of(ours), of(upstream)) })
	}
}

// BenchmarkWorkqueue is the way of a key through a workqueue: alone, and in a burst in which every key is wanted twice.
func BenchmarkWorkqueue(b *testing.B) {
	type queue interface {
		Add(key string)
		Get() (string, bool)
		Done(key string)
		ShutDown()
	}
	var keys []string
	for _, pod := range benchPods(1000, 1) {
		keys = append(keys, pod.Namespace+"/"+pod.Name)
	}
	one := func(make func() queue) func(*testing.B) {
		return func(b *testing.B) {
			q := make()
			defer q.ShutDown()
			for b.Loop() {
				q.Add("default/a")
				key, _ := q.Get()
				q.Done(key)
			}
		}
	}
	burst := func(make func() queue) func(*testing.B) {
		return func(b *testing.B) {
			q := make()
			defer q.ShutDown()
			for b.Loop() {
				for _, key := range keys {
					q.Add(key)
					q.Add(key)
				}
				for range keys {
					key, _ := q.Get()
					q.Done(key)
				}
			}
		}
	}
	ours := func() queue { return controllers.NewQueue(nil) }
	upstream := func() queue { return workqueue.NewTyped[string]() }
	b.Run("AddGetDone", func(b *testing.B) { bothSides(b, one(ours), one(upstream)) })
	b.Run("Burst", func(b *testing.B) { bothSides(b, burst(ours), burst(upstream)) })
}

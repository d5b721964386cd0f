package upstream

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
	controllers "listwatch/chapters/14-controllers"
	"listwatch/internal/check/eventually"
	"listwatch/internal/observe/probe"
)

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

// benchQueue is a queue of either side. pop takes one object, popBatch what the queue gives at once; it returns how
// many deltas that were.
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
		q := deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{KnownObjects: none{}})
		return benchQueue{q.Add, func() { q.Pop(process) }, func() int { q.Pop(process); return popped }}
	}
	q := deltafifo.NewRealFIFO(deltafifo.RealFIFOOptions{})
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
			bothSides(b, func(b *testing.B) { bench(b, ourQueue(kind)) }, func(b *testing.B) {
				bench(b,
					upstreamQueue(kind))
			})
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
		for b.Loop() {
			for _, pod := range pods {
				q.add(pod)
			}
			for popped := 0; popped < len(pods); {
				popped += q.popBatch()
			}
		}
	})
}

// channel is a ListerWatcher that costs nothing: it lists one list, and its only watch is a channel. It serves both
// sides.
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

// benchInformer is the informer that is measured: how to add a handler, and its Run.
type benchInformer struct {
	add func(*counting)
	run func(context.Context)
}

func ourInformer(c *channel, p *probe.Probe) benchInformer {
	i := informer.NewSharedIndexInformer(informer.Config{
		ListerWatcher: c, ExampleObject: &corev1.Pod{}, Clock: clock.RealClock{}, Probe: p,
		Indexers: indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
	})
	return benchInformer{add: func(c *counting) { i.AddEventHandler(c) }, run: i.Run}
}

func upstreamInformer(b *testing.B, c *channel) benchInformer {
	useGates(b, mode{})
	i := cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: c.List, WatchFuncWithContext: c.Watch},
		&corev1.Pod{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	return benchInformer{add: func(c *counting) { i.AddEventHandler(c) }, run: i.RunWithContext}
}

// BenchmarkInformerEvents is one event from the watch to all handlers, an informer's daily bread.
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

// BenchmarkInformerProbes is what it costs to write every moment of it down.
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

// informerEvents sends b.N events and waits until all n handlers have been told of all.
func informerEvents(b *testing.B, n int, informerOf func(*channel) benchInformer) {
	pods, again := benchPods(1000, 1), benchPods(1000, 1001)
	c := newChannel(pods)
	i := informerOf(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}) // closed when the informer has ended
	handlers := make([]*counting, n)
	for at := range handlers {
		handlers[at] = &counting{want: int64(len(pods) + b.N), done: make(chan struct{})}
		i.add(handlers[at])
	}
	go func() {
		defer close(ended)
		i.run(ctx)
	}()
	eventually.Holds(b, "the handlers are told of the pods there are",
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
	cancel()
	<-ended
}

// BenchmarkStore measures reads and writes of a store with 10,000 pods, 1,000 in each namespace and 100 on each node.
func BenchmarkStore(b *testing.B) {
	byNode := func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
	ours := indexer.NewIndexer(indexer.Config{Indexers: indexer.Indexers{"node": byNode,
		indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc}})
	upstream := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{"node": byNode,
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	again := benchPods(10_000, 10_001)
	var objs []any
	for _, pod := range benchPods(10_000, 1) {
		objs = append(objs, pod)
	}
	ours.Replace(objs, "1")
	upstream.Replace(objs, "1")
	type store interface {
		ByIndex(name, value string) ([]any, error)
		GetByKey(key string) (any, bool, error)
		List() []any
		Update(obj any) error
		Replace(objs []any, rv string) error
	}
	for _, act := range []struct {
		name string
		do   func(s store, i int)
	}{
		{"ByIndex", func(s store, _ int) { s.ByIndex("node", "node-7") }},
		{"GetByKey", func(s store, _ int) { s.GetByKey("namespace-7/pod-004567") }},
		{"List", func(s store, _ int) { s.List() }},
		{"Update", func(s store, i int) { s.Update(again[i%len(again)]) }},
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

// BenchmarkWorkqueue is the way of keys through a workqueue: of one alone, and of a thousand in a burst in which every
// key is wanted twice.
func BenchmarkWorkqueue(b *testing.B) {
	type queue interface {
		Add(key string)
		Get() (string, bool)
		Done(key string)
		ShutDown()
	}
	for name, n := range map[string]int{"AddGetDone": 1, "Burst": 1000} {
		pods := benchPods(n, 1)
		through := func(q queue) func(b *testing.B) {
			return func(b *testing.B) {
				for b.Loop() {
					for _, pod := range pods {
						for range min(n, 2) {
							q.Add(pod.Name)
						}
					}
					for range pods {
						key, _ := q.Get()
						q.Done(key)
					}
				}
			}
		}
		b.Run(name, func(b *testing.B) {
			ours, upstream := controllers.NewQueue(nil), workqueue.NewTyped[string]()
			defer ours.ShutDown()
			defer upstream.ShutDown()
			bothSides(b, through(ours), through(upstream))
		})
	}
}

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
	"k8s.io/utils/clock"

	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
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

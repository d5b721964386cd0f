package upstream

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	realstorage "k8s.io/apiserver/pkg/storage"

	storage "listwatch/chapters/01-storage"
)

// feed is the storage below a cache that is measured: some pods, and then the events that a benchmark makes. Both sides
// are given the same.
type feed struct {
	pods   int
	nodes  int              // pod i runs on node i % nodes
	events chan watch.Event // made by watch, sent to by the benchmark, never closed
	rv     atomic.Uint64    // of the newest event
	made   []watch.Event    // by prepare; owned by the benchmark
}

func newFeed(pods, nodes int) *feed {
	f := &feed{pods: pods, nodes: nodes}
	// Room for the initial events, for their end, and for as many as etcd's watchChan would hold.
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

// pod returns pod number i at rv: of the size of a pod of a Deployment, more or less.
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

// prepare makes n events, in which pods change in turn. The returned function sends them; call it before the next
// prepare.
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

// ResultChan and Stop make feed the watch that it hands out. There is one.
func (f *feed) ResultChan() <-chan watch.Event { return f.events }
func (f *feed) Stop()                          {}

// ourFeed and theirFeed are a feed as a storage. What they do not implement is not called.
type ourFeed struct {
	storage.Interface
	*feed
}

func (f ourFeed) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return f.feed, nil
}
func (f ourFeed) GetCurrentResourceVersion(context.Context) (uint64, error) { return f.rv.Load(), nil }
func (f ourFeed) RequestWatchProgress(context.Context) error                { return nil }

type theirFeed struct {
	realstorage.Interface
	*feed
}

func (f theirFeed) Watch(context.Context, string, realstorage.ListOptions) (watch.Interface, error) {
	return f.feed, nil
}
func (f theirFeed) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return f.rv.Load(), nil
}
func (f theirFeed) RequestWatchProgress(context.Context) error              { return nil }
func (f theirFeed) EnableResourceSizeEstimation(realstorage.KeysFunc) error { return nil }
func (f theirFeed) CompactRevision() int64                                  { return 0 }
func (f theirFeed) ReadinessCheck() error                                   { return nil }
func (f theirFeed) Versioner() realstorage.Versioner                        { return realstorage.APIObjectVersioner{} }

// compareSides runs bench for ours and for upstream, each with a cache of its own over a feed of its own.
func compareSides(b *testing.B, pods, nodes int, bench func(b *testing.B, f *feed, cache side)) {
	bothSides(b, func(b *testing.B) {
		f := newFeed(pods, nodes)
		bench(b, f, ours{newOurCache(b, ourFeed{feed: f}, nil)})
	}, func(b *testing.B) {
		f := newFeed(pods, nodes)
		bench(b, f, theirs{newTheirCache(b, theirFeed{feed: f})})
	})
}

// channels is what is left of a cache when everything is taken away but its goroutines and the channels between them:
// the same hops, of the same capacities, and nothing done at any of them. What it needs no cache with these hops can do
// without.
//
//	feed ─► reflector ─► incoming 100 ─► dispatchEvents ─► input 171 ─► process ─► result 171, for each watcher
type channels struct {
	incoming chan watch.Event // sent and closed by reflect; 100 as in both caches
	inTurn   bool             // each event is for one watcher only, the next one; otherwise for all

	mu       sync.Mutex         // guards watchers
	watchers []*channelsWatcher // replaced, never written to
}

// channelsWatcher is one watcher of everything.
type channelsWatcher struct {
	input  chan *watch.Event // sent by dispatch, never closed; never full when the watch is stopped
	result chan watch.Event  // sent and closed by process
	done   chan struct{}     // closed once, when the watch is stopped
	stop   func()
}

// newChannels returns channels behind f that end with the test.
func newChannels(tb testing.TB, f *feed, inTurn bool) *channels {
	c := &channels{incoming: make(chan watch.Event, 100), inTurn: inTurn}
	for range f.pods + 1 {
		<-f.events // the initial events and their end
	}
	ended, stop := make(chan struct{}), make(chan struct{})
	go c.reflect(f, stop)
	go func() {
		defer close(ended)
		c.dispatch()
	}()
	tb.Cleanup(func() {
		close(stop)
		<-ended
	})
	return c
}

func (c *channels) reflect(f *feed, stop <-chan struct{}) {
	defer close(c.incoming)
	for {
		select {
		case <-stop:
			return
		case event := <-f.events:
			c.incoming <- event
		}
	}
}

func (c *channels) dispatch() {
	turn := 0
	for event := range c.incoming {
		c.mu.Lock()
		watchers := c.watchers
		c.mu.Unlock()
		if c.inTurn {
			turn = (turn + 1) % len(watchers)
			watchers = watchers[turn : turn+1]
		}
		for _, w := range watchers {
			w.input <- &event
		}
	}
}

func (c *channels) watch(ctx context.Context, _ query) (watch.Interface, error) {
	w := &channelsWatcher{input: make(chan *watch.Event, 171), result: make(chan watch.Event, 171),
		done: make(chan struct{})}
	w.stop = sync.OnceFunc(func() { c.forget(w) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = append(slices.Clone(c.watchers), w)
	go w.process()
	context.AfterFunc(ctx, w.stop)
	return w, nil
}

func (c *channels) forget(w *channelsWatcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = slices.DeleteFunc(slices.Clone(c.watchers), func(other *channelsWatcher) bool { return other == w })
	close(w.done)
}

func (w *channelsWatcher) process() {
	defer close(w.result)
	for {
		select {
		case <-w.done:
			return
		case event := <-w.input:
			w.result <- *event
		}
	}
}

func (w *channelsWatcher) ResultChan() <-chan watch.Event { return w.result }
func (w *channelsWatcher) Stop()                          { w.stop() }

// list and get are not asked for.
func (c *channels) list(context.Context, query, *corev1.PodList) error {
	panic("channels hold nothing")
}
func (c *channels) get(context.Context, string, string, bool, *corev1.Pod) error {
	panic("channels hold nothing")
}

var _ side = (*channels)(nil)

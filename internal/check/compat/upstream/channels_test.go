package upstream

import (
	"context"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

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

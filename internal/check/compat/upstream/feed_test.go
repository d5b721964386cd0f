package upstream

import (
	"context"
	"fmt"
	"strconv"
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

package cacher

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// idleStorage has nothing and says nothing: the benchmark feeds the cache itself.
type idleStorage struct{ storage.Interface }

func (idleStorage) GetCurrentResourceVersion(context.Context) (uint64, error) { return 1, nil }
func (idleStorage) RequestWatchProgress(context.Context) error                { return nil }

// BenchmarkFanOut measures one event from the cache's writer to the result of every watcher.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchmarkFanOut(b, n, nil) })
	}
}

// BenchmarkFanOutProbed is the same with every moment reported.
func BenchmarkFanOutProbed(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		p := probe.New(probe.NewLog(clock.RealClock{}, 0))
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchmarkFanOut(b, n, p.Resource("pods")) })
	}
}

func benchmarkFanOut(b *testing.B, n int, p *probe.Probe) {
	c, err := New(Config{
		Storage: idleStorage{}, ResourcePrefix: prefix, Namespaced: true, KeyFunc: keyFunc,
		NewFunc: newPod, NewListFunc: newPodList, GetAttrs: podAttrs, Clock: clock.RealClock{}, RingCapacity: 6400, Probe: p,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	if err := c.watchCache.Replace(nil, "1"); err != nil {
		b.Fatal(err)
	}
	dispatched := make(chan struct{})
	new(routine.Group).Go(context.Background(), "cacher.dispatchEvents", func(context.Context) {
		defer close(dispatched)
		c.dispatchEvents(ctx)
	})
	const batch = 80 // what input has room for: no watcher is ever too slow
	var received sync.WaitGroup
	for range n {
		w, err := c.Watch(ctx, prefix, everything("1"))
		if err != nil {
			b.Fatal(err)
		}
		new(routine.Group).Go(context.Background(), "test.client", func(context.Context) { drain(w, batch, &received) })
	}
	original := pod("default/a")
	b.ReportAllocs()
	for i := range b.N {
		if i%batch == 0 {
			received.Wait()
			received.Add(n)
		}
		changed := original.DeepCopy()
		changed.ResourceVersion = strconv.Itoa(i + 2)
		if err := c.watchCache.Update(changed); err != nil {
			b.Fatal(err)
		}
	}
	if b.N%batch == 0 {
		received.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delivery")
	b.StopTimer()
	c.ready.stop()
	c.terminateAllWatchers()
	close(c.incoming)
	<-dispatched
	c.watcherRoutines.Wait()
	if closed := c.nTerminated.Load(); closed > 0 {
		b.Fatalf("%d of %d watchers did not keep up", closed, n)
	}
}

// drain reads until the end, and says so after every batch.
func drain(w watch.Interface, batch int, received *sync.WaitGroup) {
	n := 0
	for range w.ResultChan() {
		if n++; n%batch == 0 {
			received.Done()
		}
	}
}

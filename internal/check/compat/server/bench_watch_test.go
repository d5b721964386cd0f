package server

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/compat/ratios"
)

const (
	// ringEvents are sent before anything is measured: both rings grow to 12800 then, and with them the channels of
	// watchers that come after, to 171.
	ringEvents = 10000
	// burst is how many events are sent before all of them must have arrived. No channel is full with that.
	burst = 64
)

// BenchmarkFanOut takes one event to every one of n watchers of everything. An operation is one event.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("%d-watchers", n), func(b *testing.B) {
			compareSides(b, 1000, 1000, func(b *testing.B, f *feed, cache side) { fanOut(b, f, cache, n) })
			b.Run("floor", func(b *testing.B) {
				f := newFeed(1000, 1000)
				fanOut(b, f, newChannels(b, f, false), n)
			})
		})
	}
}

func fanOut(b *testing.B, f *feed, cache side, n int) {
	fill(b, f, cache)
	c := newCrowd(b, cache, n, func(int) query { return query{rv: fmt.Sprint(f.rv.Load())} })
	c.perEvent = n
	c.measure(f)
}

// BenchmarkNodes takes one event to the one of 1000 watchers that watches the pod's node, by the trigger index.
func BenchmarkNodes(b *testing.B) {
	compareSides(b, 1000, 1000, nodes)
	b.Run("floor", func(b *testing.B) {
		f := newFeed(1000, 1000)
		nodes(b, f, newChannels(b, f, true))
	})
}

func nodes(b *testing.B, f *feed, cache side) {
	fill(b, f, cache)
	c := newCrowd(b, cache, 1000, func(i int) query {
		return query{rv: fmt.Sprint(f.rv.Load()), field: fmt.Sprintf("spec.nodeName=n%d", i)}
	})
	c.perEvent = 1
	c.measure(f)
}

// BenchmarkLatency is how long one event takes to each of 1000 watchers that have nothing else to do: the median of all
// deliveries, and the 99th percentile.
func BenchmarkLatency(b *testing.B) {
	compareSides(b, 1000, 1000, latency)
}

func latency(b *testing.B, f *feed, cache side) {
	const n = 1000
	fill(b, f, cache)
	var took [n][]time.Duration // each appended to by one reader
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
		f.make(1)
		arrived.Add(n)
		start = time.Now()
		f.send(f.made)
		arrived.Wait()
	}
	cancel()
	readers.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took[:]...)))
	b.ReportMetric(float64(all[len(all)/2]), "p50-ns")
	b.ReportMetric(float64(all[len(all)*99/100]), "p99-ns")
}

// BenchmarkReplay begins a watch 10000 events ago and reads them all.
func BenchmarkReplay(b *testing.B) {
	compareSides(b, 1000, 1000, func(b *testing.B, f *feed, cache side) {
		from := fmt.Sprint(f.rv.Load())
		fill(b, f, cache)
		b.ReportAllocs()
		defer reportCPU(b)()
		for b.Loop() {
			w := must(cache.watch(b.Context(), query{rv: from}))
			for range ringEvents {
				if event := <-w.ResultChan(); event.Type != watch.Modified {
					b.Fatalf("got %v", event)
				}
			}
			w.Stop()
		}
	})
}

// BenchmarkInitialEvents begins a watch with the state of 10000 pods and reads it to the bookmark at its end.
func BenchmarkInitialEvents(b *testing.B) {
	compareSides(b, 10000, 1000, func(b *testing.B, f *feed, cache side) {
		yes := true
		b.ReportAllocs()
		defer reportCPU(b)()
		for b.Loop() {
			w := must(cache.watch(b.Context(), query{initial: &yes, bookmarks: true}))
			for event := range w.ResultChan() {
				if event.Type == watch.Bookmark {
					break
				}
			}
			w.Stop()
		}
	})
}

// reportCPU begins to count processor time. The returned function reports it.
func reportCPU(b *testing.B) func() {
	start := ratios.CPUTime()
	return func() { b.ReportMetric(float64((ratios.CPUTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

// fill sends events until the ring is as large as it will be, and returns when the cache has all of them.
func fill(b *testing.B, f *feed, cache side) {
	b.Helper()
	w := must(cache.watch(b.Context(), query{rv: fmt.Sprint(f.rv.Load())}))
	for sent := 0; sent < ringEvents; sent += 10 { // 10: as many as the first watchers have room for
		f.make(10)
		f.send(f.made)
		for range 10 {
			<-w.ResultChan()
		}
	}
	w.Stop()
}

// crowd is a number of watchers, each read by a goroutine of its own as fast as it goes.
type crowd struct {
	b        *testing.B
	watches  []watch.Interface
	readers  sync.WaitGroup
	perEvent int // how many of them hear of one event

	due     atomic.Int64  // deliveries altogether that a burst must bring the crowd to
	seen    atomic.Int64  // deliveries that readers have reported
	arrived chan struct{} // sent once per burst by the reader that reports the last; capacity 1: it goes on at once
}

func newCrowd(b *testing.B, cache side, n int, q func(i int) query) *crowd {
	b.Helper()
	c := &crowd{b: b, arrived: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(func() {
		cancel()
		c.readers.Wait()
	})
	for i := range n {
		w := must(cache.watch(ctx, q(i)))
		c.watches = append(c.watches, w)
		c.readers.Go(func() { c.read(w) })
	}
	return c
}

// read reports its deliveries in one step per visit to an empty channel, so that counting costs next to nothing.
func (c *crowd) read(w watch.Interface) {
	n := int64(0)
	for range w.ResultChan() {
		n++
		if len(w.ResultChan()) > 0 {
			continue
		}
		if c.seen.Add(n) == c.due.Load() {
			c.arrived <- struct{}{}
		}
		n = 0
	}
}

// measure sends b.N events in bursts.
func (c *crowd) measure(f *feed) {
	b := c.b
	var before, after runtime.MemStats
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	allocs, cpu := uint64(0), time.Duration(0)
	for sent := 0; sent < b.N; sent += burst {
		n := min(burst, b.N-sent)
		f.make(n)
		c.due.Add(int64(n * c.perEvent))
		runtime.ReadMemStats(&before)
		start := ratios.CPUTime()
		b.StartTimer()
		f.send(f.made)
		<-c.arrived
		b.StopTimer()
		cpu += ratios.CPUTime() - start
		runtime.ReadMemStats(&after)
		allocs += after.Mallocs - before.Mallocs
	}
	deliveries := float64(b.N) * float64(c.perEvent)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/deliveries, "ns/delivery")
	b.ReportMetric(float64(cpu.Nanoseconds())/deliveries, "cpu-ns/delivery")
	b.ReportMetric(float64(allocs)/deliveries, "allocs/delivery")
}

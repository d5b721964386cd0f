package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
)

// ringEvents are sent before anything is measured: both rings grow to 12800 then, and with them the channels of
// watchers that come after, to 171.
const ringEvents = 10000

// BenchmarkFanOut takes one event to every one of n watchers of everything. An operation is one event.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("%d-watchers", n), func(b *testing.B) {
			compareSides(b, 1000, 1000, func(b *testing.B, f *feed, cache side) { fanOut(b, f, cache, n) })
		})
	}
}

// fanOut lets n watchers in and measures. A reader reports its deliveries in one step per visit to an empty channel, so
// that counting costs next to nothing.
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

// BenchmarkLatency is how long one event takes to each of 1000 watchers that have nothing else to do: the median of all
// deliveries, and the 99th percentile.
func BenchmarkLatency(b *testing.B) {
	compareSides(b, 1000, 1000, func(b *testing.B, f *feed, cache side) {
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

// BenchmarkReplay begins a watch 10000 events ago and reads them all.
func BenchmarkReplay(b *testing.B) {
	compareSides(b, 1000, 1000, func(b *testing.B, f *feed, cache side) {
		from := fmt.Sprint(f.rv.Load())
		fill(b, f, cache)
		defer reportCPU(b)()
		for b.Loop() {
			w := must(cache.watch(b.Context(), query{rv: from}))
			for range ringEvents {
				if event := <-w.ResultChan(); event.Type != watch.Modified { // require costs more than the event
					b.Fatalf("got %v", event)
				}
			}
			w.Stop()
		}
	})
}

// fill sends events until the ring is as large as it will be, and returns when the cache has all of them.
func fill(b *testing.B, f *feed, cache side) {
	b.Helper()
	w := must(cache.watch(b.Context(), query{rv: fmt.Sprint(f.rv.Load())}))
	for sent := 0; sent < ringEvents; sent += 10 { // 10: as many as the first watchers have room for
		f.prepare(10)()
		for range 10 {
			<-w.ResultChan()
		}
	}
	w.Stop()
}

// BenchmarkProbes measures what it costs to write every moment down: between two Go channels, where a delivery takes no
// longer than the three reports that are made of it.
func BenchmarkProbes(b *testing.B) {
	for _, state := range []string{"off", "on"} {
		var p *probe.Probe
		if state == "on" {
			log := probe.NewLog(clock.RealClock{}, 0)
			log.LimitLoud(probe.LoudLanes, nil) // as in the program
			p = probe.New(log).Resource("pods")
		}
		for _, n := range []int{100, 1000} {
			b.Run(fmt.Sprintf("fan-out-%d/%s", n, state), func(b *testing.B) {
				f := newFeed(1000, 1000)
				fanOut(b, f, ours{newOurCache(b, ourFeed{feed: f}, p)}, n)
			})
		}
	}
}

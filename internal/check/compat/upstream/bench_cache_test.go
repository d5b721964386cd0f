package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
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
			b.Run(floor, func(b *testing.B) {
				f := newFeed(1000, 1000)
				fanOut(b, f, newChannels(b, f, false), n)
			})
		})
	}
}

func fanOut(b *testing.B, f *feed, cache side, n int) {
	fill(b, f, cache)
	gather(b, f, cache, n, n, func(int) string { return "" })
}

// BenchmarkNodes takes one event to the one of 1000 watchers that watches the pod's node, by the trigger index.
func BenchmarkNodes(b *testing.B) {
	nodes := func(b *testing.B, f *feed, cache side) {
		fill(b, f, cache)
		gather(b, f, cache, 1000, 1, func(i int) string { return fmt.Sprintf("spec.nodeName=n%d", i) })
	}
	compareSides(b, 1000, 1000, nodes)
	b.Run(floor, func(b *testing.B) {
		f := newFeed(1000, 1000)
		nodes(b, f, newChannels(b, f, true))
	})
}

// gather lets n watchers in, perEvent of which are sent each event, and measures. A reader reports its deliveries in
// one step per visit to an empty channel, so that counting costs next to nothing.
func gather(b *testing.B, f *feed, cache side, n, perEvent int, field func(i int) string) {
	c := newCrowd(perEvent)
	ctx, cancel := context.WithCancel(context.Background())
	defer c.readers.Wait()
	defer cancel()
	for i := range n {
		w := must(cache.watch(ctx, query{rv: fmt.Sprint(f.rv.Load()), field: field(i)}))
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
				event := <-w.ResultChan()
				require.Equal(b, event.Type, watch.Modified, "got %v", event)
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

// BenchmarkList reads 10000 pods, or those of them that are selected, from the cache. The floor copies the pods into a
// list, which holds values.
func BenchmarkList(b *testing.B) {
	for _, list := range []struct {
		name string
		query
	}{
		{"at-0", query{rv: "0"}},
		{"at-0-one-in-ten", query{rv: "0", label: "app=app3"}},
		{"at-0-one-node", query{rv: "0", field: "spec.nodeName=n3"}},
		{"at-0-one-namespace", query{rv: "0", namespace: "ns3"}},
		{"consistent", query{}},
		{"pages-of-500", query{limit: 500}},
	} {
		b.Run(list.name, func(b *testing.B) {
			compareSides(b, 10000, 1000, func(b *testing.B, _ *feed, cache side) {
				defer reportCPU(b)()
				for b.Loop() {
					listPages(b, cache, list.query)
				}
			})
			if list.name == "at-0" {
				b.Run(floor, copyPods)
			}
		})
	}
}

func copyPods(b *testing.B) {
	f := newFeed(10000, 1000)
	pods := make([]*corev1.Pod, f.pods)
	for i := range pods {
		pods[i] = f.pod(i, 1)
	}
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		list := &corev1.PodList{Items: make([]corev1.Pod, 0, len(pods))}
		for _, p := range pods {
			list.Items = append(list.Items, *p)
		}
		require.Equal(b, len(list.Items), f.pods, "some are missing")
	}
}

func listPages(b *testing.B, cache side, page query) {
	for found := 0; ; {
		list := &corev1.PodList{}
		require.NoError(b, cache.list(b.Context(), page, list))
		found += len(list.Items)
		if page.token = list.Continue; page.token == "" {
			require.True(b, found != 0, "an empty list")
			return
		}
	}
}

// BenchmarkCommitToResult writes a pod into etcd and waits until a watcher of the cache has it: the whole server half,
// and etcd before it. An operation is one write.
func BenchmarkCommitToResult(b *testing.B) { commits(b, 1) }

// BenchmarkCommitsToResults writes 100 pods in one transaction and waits for all of them: at this rate decoding counts,
// and etcd does not. An operation is one transaction.
func BenchmarkCommitsToResults(b *testing.B) { commits(b, 100) }

func commits(b *testing.B, n int) {
	bothSides(b, func(b *testing.B) { commitOurs(b, n, nil) }, func(b *testing.B) {
		client := newEtcd(b)
		commit(b, client, theirs{newTheirCache(b, newTheirStore(b, client))}, n)
	})
}

func commitOurs(b *testing.B, n int, p *probe.Probe) {
	client := newEtcd(b)
	commit(b, client, ours{newOurCache(b, newOurStore(b, client, p), p)}, n)
}

// commit writes n pods at a time. It first writes until the ring has grown, and with it the channels of a watcher that
// comes now: 171 events have room in them. In the channels of a fresh cache, which have room for 10, a transaction of
// 100 makes every watcher a slow one.
func commit(b *testing.B, client *clientv3.Client, cache side, n int) {
	ops, rv := puts(100), int64(0)
	for range ringEvents / len(ops) {
		rv = must(client.Txn(context.Background()).Then(ops...).Commit()).Header.Revision
	}
	all := query{rv: fmt.Sprint(rv), match: metav1.ResourceVersionMatchNotOlderThan}
	eventually.Holds(b, "the cache has what was written", func() bool {
		return cache.list(b.Context(), all, &corev1.PodList{}) == nil
	})
	w := must(cache.watch(b.Context(), query{initial: new(bool)}))
	arrived := make(chan struct{}, 1) // sent after every n events; one operation is under way at a time
	go func() {
		defer close(arrived)
		for seen := 1; ; seen++ {
			if _, open := <-w.ResultChan(); !open {
				return
			}
			if seen%n == 0 {
				arrived <- struct{}{}
			}
		}
	}()
	report := reportCPU(b)
	for b.Loop() {
		must(client.Txn(context.Background()).Then(ops[:n]...).Commit())
		if _, open := <-arrived; !open {
			b.Fatal("the watcher was taken for a slow one and closed: whatever was measured is not the way of an event")
		}
	}
	report()
	w.Stop()
	for range arrived { // until the reader has ended
	}
}

// puts returns what writes n pods.
func puts(n int) []clientv3.Op {
	f := newFeed(n, 1000)
	ops := make([]clientv3.Op, n)
	for i := range ops {
		p := f.pod(i, 0)
		p.ResourceVersion = ""
		ops[i] = clientv3.OpPut(must(keyOf(p)), string(must(runtime.Encode(codec, p))))
	}
	return ops
}

// BenchmarkProbes measures what it costs to write every moment down: between two Go channels, where a delivery takes no
// longer than the three reports that are made of it, and behind a real etcd, where nothing can be measured.
func BenchmarkProbes(b *testing.B) {
	for _, state := range []string{"off", "on"} {
		newProbe := func() *probe.Probe {
			if state == "off" {
				return nil
			}
			log := probe.NewLog(clock.RealClock{}, 0)
			log.LimitLoud(probe.LoudLanes, nil) // as in the program
			return probe.New(log).Resource("pods")
		}
		for _, n := range []int{100, 1000} {
			b.Run(fmt.Sprintf("fan-out-%d/%s", n, state), func(b *testing.B) {
				f := newFeed(1000, 1000)
				fanOut(b, f, ours{newOurCache(b, ourFeed{feed: f}, newProbe())}, n)
			})
		}
		b.Run("commit-to-result/"+state, func(b *testing.B) { commitOurs(b, 1, newProbe()) })
		b.Run("commits-to-results/"+state, func(b *testing.B) { commitOurs(b, 100, newProbe()) })
	}
}

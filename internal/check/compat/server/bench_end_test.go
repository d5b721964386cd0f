package server

import (
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/eventually"
	"listwatch/internal/observe/probe"
)

// BenchmarkCommitToResult writes a pod into etcd and waits until a watcher of the cache has it: the whole server half,
// and etcd before it. An operation is one write.
func BenchmarkCommitToResult(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		client := newEtcd(b)
		commit(b, client, ours{newOurCache(b, newOurStore(b, client, nil), nil)}, 1)
	})
	b.Run("upstream", func(b *testing.B) {
		client := newEtcd(b)
		commit(b, client, theirs{newTheirCache(b, newTheirStore(b, client))}, 1)
	})
}

// BenchmarkCommitsToResults writes 100 pods in one transaction and waits for all of them: at this rate decoding counts,
// and etcd does not. An operation is one transaction.
func BenchmarkCommitsToResults(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		client := newEtcd(b)
		commit(b, client, ours{newOurCache(b, newOurStore(b, client, nil), nil)}, 100)
	})
	b.Run("upstream", func(b *testing.B) {
		client := newEtcd(b)
		commit(b, client, theirs{newTheirCache(b, newTheirStore(b, client))}, 100)
	})
}

// commit writes n pods at a time.
func commit(b *testing.B, client *clientv3.Client, cache side, n int) {
	warm(b, client, cache)
	ops := puts(n)
	w := must(cache.watch(b.Context(), query{initial: new(bool)}))
	arrived := make(chan struct{}, 1) // sent by read after every n events; one operation is under way at a time
	go read(w, n, arrived)
	b.ReportAllocs()
	report := reportCPU(b)
	for b.Loop() {
		must(client.Txn(context.Background()).Then(ops...).Commit())
		if _, open := <-arrived; !open {
			b.Fatal("the watcher was taken for a slow one and closed: whatever was measured is not the way of an event")
		}
	}
	report()
	w.Stop()
	for range arrived { // until read has ended
	}
}

// read counts events and reports every n.
func read(w watch.Interface, n int, arrived chan<- struct{}) {
	defer close(arrived)
	for seen := 1; ; seen++ {
		if _, open := <-w.ResultChan(); !open {
			return
		}
		if seen%n == 0 {
			arrived <- struct{}{}
		}
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

// warm writes until the ring has grown, and with it the channels of a watcher that comes now: 171 events have room in them. In the
// channels of a fresh cache, which have room for 10, a transaction of 100 makes every watcher a slow one.
func warm(b *testing.B, client *clientv3.Client, cache side) {
	b.Helper()
	ops, rv := puts(100), int64(0)
	for range ringEvents / len(ops) {
		rv = must(client.Txn(context.Background()).Then(ops...).Commit()).Header.Revision
	}
	all := query{rv: fmt.Sprint(rv), match: metav1.ResourceVersionMatchNotOlderThan}
	eventually.Holds(b, "the cache has what was written", func() bool {
		return cache.list(b.Context(), all, &corev1.PodList{}) == nil
	})
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
		b.Run("commit-to-result/"+state, func(b *testing.B) {
			client, p := newEtcd(b), newProbe()
			commit(b, client, ours{newOurCache(b, newOurStore(b, client, p), p)}, 1)
		})
		b.Run("commits-to-results/"+state, func(b *testing.B) {
			client, p := newEtcd(b), newProbe()
			commit(b, client, ours{newOurCache(b, newOurStore(b, client, p), p)}, 100)
		})
	}
}

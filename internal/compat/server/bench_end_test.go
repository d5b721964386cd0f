package server

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/probe"
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
	f := newFeed(n, 1000)
	ops := make([]clientv3.Op, n)
	for i := range ops {
		p := f.pod(i, 0)
		p.ResourceVersion = ""
		ops[i] = clientv3.OpPut(must(keyOf(p)), string(must(runtime.Encode(codec, p))))
	}
	w := must(cache.watch(b.Context(), query{initial: new(bool)}))
	arrived := make(chan struct{}, 1) // sent by read after every n events; one operation is under way at a time
	read := func(w watch.Interface) {
		defer close(arrived)
		for seen := 1; ; seen++ {
			if _, ok := <-w.ResultChan(); !ok {
				return
			}
			if seen%n == 0 {
				arrived <- struct{}{}
			}
		}
	}
	go read(w)
	b.ReportAllocs()
	report := reportCPU(b)
	for b.Loop() {
		must(client.Txn(context.Background()).Then(ops...).Commit())
		<-arrived
	}
	report()
	w.Stop()
	for range arrived { // until read has ended
	}
}

// BenchmarkProbes measures what it costs to write every moment down: between two Go channels, where a delivery takes
// less time than a look at the clock, and behind a real etcd.
func BenchmarkProbes(b *testing.B) {
	for _, state := range []string{"off", "on"} {
		newProbe := func() *probe.Probe {
			if state == "off" {
				return nil
			}
			return probe.New(probe.NewLog(clock.RealClock{}, 0)).Resource("pods")
		}
		b.Run("fan-out-100/"+state, func(b *testing.B) {
			f := newFeed(1000, 1000)
			fanOut(b, f, ours{newOurCache(b, ourFeed{feed: f}, newProbe())}, 100)
		})
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

package etcd3

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/server/mvcc"
)

// BenchmarkWatchDecode delivers a history of 1000 pods to one watch: parse, decode, order, send.
func BenchmarkWatchDecode(b *testing.B) {
	for _, age := range []string{WatcherEtcd3, WatcherEtcd2} {
		b.Run(age, func(b *testing.B) {
			const n = 1000
			s := newStore(b, mvcc.New(clock.RealClock{}), func(cfg *Config) { cfg.Watcher = age })
			for i := range n {
				create(b, s, pod(fmt.Sprintf("p%d", i), "web"))
			}
			opts := everything()
			opts.ResourceVersion = "1"
			b.ReportAllocs()
			for b.Loop() {
				w, err := s.Watch(context.Background(), prefix, opts)
				if err != nil {
					b.Fatal(err)
				}
				for range n {
					<-w.ResultChan()
				}
				w.Stop()
				for range w.ResultChan() {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
		})
	}
}

// BenchmarkGetList reads 1000 pods.
func BenchmarkGetList(b *testing.B) {
	s := newStore(b, mvcc.New(clock.RealClock{}), nil)
	for i := range 1000 {
		create(b, s, pod(fmt.Sprintf("p%d", i), "web"))
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.GetList(context.Background(), prefix, everything(), newPodList()); err != nil {
			b.Fatal(err)
		}
	}
}

package deltafifo

import (
	"fmt"
	"testing"
)

// BenchmarkAddPop is the steady state: one in, one out.
func BenchmarkAddPop(b *testing.B) {
	for _, s := range setups {
		b.Run(s.name, func(b *testing.B) {
			q := s.make(newConsumer())
			obj := pod("a", 1)
			process := func(Deltas, bool) error { return nil }
			b.ReportAllocs()
			for b.Loop() {
				q.Add(obj)
				q.Pop(process)
			}
		})
	}
}

// BenchmarkBurst is a thousand objects in, and then out.
func BenchmarkBurst(b *testing.B) {
	objs := make([]any, 1000)
	for i := range objs {
		objs[i] = pod(fmt.Sprint(i), i+1)
	}
	for _, s := range setups {
		b.Run(s.name, func(b *testing.B) {
			q := s.make(newConsumer())
			process := func(Deltas, bool) error { return nil }
			processBatch := func(Deltas, bool) error { return nil }
			b.ReportAllocs()
			for b.Loop() {
				for _, obj := range objs {
					q.Add(obj)
				}
				for q.Snapshot().Len > 0 {
					if batchQueue, ok := q.(QueueWithBatch); ok {
						batchQueue.PopBatch(processBatch, process)
					} else {
						q.Pop(process)
					}
				}
			}
		})
	}
}

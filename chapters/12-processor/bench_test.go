package processor

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/utils/clock"
)

// BenchmarkDistribute is one update to all handlers, until the last has been told.
func BenchmarkDistribute(b *testing.B) {
	for _, handlers := range []int{1, 10} {
		b.Run(fmt.Sprintf("handlers=%d", handlers), func(b *testing.B) {
			p := New(Config{Clock: clock.RealClock{}})
			var told sync.WaitGroup
			for range handlers {
				_, err := p.AddListener(ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { told.Done() }},
					ListenerOptions{UpstreamHasSynced: syncedUpstream()})
				if err != nil {
					b.Fatal(err)
				}
			}
			p.Start()
			defer p.Stop()
			old, obj := pod("a", 1), pod("a", 2)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				told.Add(handlers)
				p.OnUpdate(old, obj)
				n++
			}
			told.Wait()
		})
	}
}

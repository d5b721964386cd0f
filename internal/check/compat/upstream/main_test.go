package upstream

import (
	"flag"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	realstorage "k8s.io/apiserver/pkg/storage"
	realfeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/klog/v2"
)

// patience is how long something may take that is sure to happen.
const patience = 30 * time.Second

// supportsEverything answers for upstream's check of what an etcd can do, also where there is none.
type supportsEverything struct {
	realfeature.FeatureSupportChecker
}

func (supportsEverything) Supports(realstorage.Feature) bool { return true }

func TestMain(m *testing.M) {
	realfeature.DefaultFeatureSupportChecker = supportsEverything{realfeature.DefaultFeatureSupportChecker}
	// The tests mostly wait: for three seconds for versions that never come, and for streams to fall silent.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	// What the real code logs about watchers that come and go is not about our program.
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	// A read that has waited for a version leaves this behind for three seconds.
	waiting := "k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(waiting))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The names of sub-benchmarks by which benchstat -col /side puts both sides beside each other.
const ourSide, upstreamSide = "side=ours", "side=upstream"

// bothSides runs two benchmarks side by side.
func bothSides(b *testing.B, ours, upstream func(b *testing.B)) {
	for _, each := range []struct {
		name  string
		bench func(b *testing.B)
	}{{ourSide, ours}, {upstreamSide, upstream}} {
		b.Run(each.name, func(b *testing.B) {
			b.ReportAllocs()
			each.bench(b)
		})
	}
}

// reportCPU begins to count processor time. The returned function reports it.
func reportCPU(b *testing.B) func() {
	start := cpuTime()
	return func() { b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

// burst is how many events are sent before all of them must have arrived. No channel is full with that.
const burst = 64

// crowd is a number of watchers, each read by a goroutine of its own as fast as it goes.
type crowd struct {
	perEvent int // how many of them are sent one event
	readers  sync.WaitGroup
	due      atomic.Int64  // deliveries altogether that a burst must bring the crowd to
	seen     atomic.Int64  // deliveries that readers have reported
	arrived  chan struct{} // sent once per burst by the reader that reports the last; capacity 1: it goes on at once
}

func newCrowd(perEvent int) *crowd {
	return &crowd{perEvent: perEvent, arrived: make(chan struct{}, 1)}
}

// report is called by a reader that has read n deliveries.
func (c *crowd) report(n int) {
	if n > 0 && c.seen.Add(int64(n)) == c.due.Load() {
		c.arrived <- struct{}{}
	}
}

// measure sends b.N events in bursts. prepare makes n events beforehand, and returns what sends them.
func (c *crowd) measure(b *testing.B, prepare func(n int) (send func())) {
	var cpu time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	for sent := 0; sent < b.N; sent += burst {
		n := min(burst, b.N-sent)
		send := prepare(n)
		c.due.Add(int64(n * c.perEvent))
		start := cpuTime()
		b.StartTimer()
		send()
		<-c.arrived
		b.StopTimer()
		cpu += cpuTime() - start
	}
	deliveries := float64(b.N) * float64(c.perEvent)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/deliveries, "ns/delivery")
	b.ReportMetric(float64(cpu.Nanoseconds())/deliveries, "cpu-ns/delivery")
}

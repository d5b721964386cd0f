package sidebyside

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

// patience limits the wait for an expected event.
const patience = 30 * time.Second

// supportsEverything replaces upstream's check of etcd's features, because some tests have no etcd.
type supportsEverything struct {
	realfeature.FeatureSupportChecker
}

func (supportsEverything) Supports(realstorage.Feature) bool { return true }

func TestMain(m *testing.M) {
	realfeature.DefaultFeatureSupportChecker = supportsEverything{realfeature.DefaultFeatureSupportChecker}
	// Many tests may run at once. They mostly wait for versions that never come, or for streams to fall silent.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	// The real code would log messages about watchers that connect and disconnect.
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	// This goroutine of upstream's outlives a read that waits for a version, by up to three seconds.
	waiting := "k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(waiting))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ourSide and upstreamSide name sub-benchmarks, so that benchstat -col /side prints both sides next to each other.
const ourSide, upstreamSide = "side=ours", "side=upstream"

// bothSides runs a benchmark of each side.
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

// reportCPU starts counting processor time. The returned function reports the mean per operation.
func reportCPU(b *testing.B) func() {
	start := cpuTime()
	return func() { b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

// burst is the number of events that a benchmark sends before it waits for all of them: too few to fill a channel.
const burst = 64

// crowd is a group of watchers, each read at full speed by a goroutine of its own.
type crowd struct {
	perEvent int // the number of watchers that get each event
	readers  sync.WaitGroup
	due      atomic.Int64  // total deliveries after the current burst
	seen     atomic.Int64  // deliveries that readers have reported
	arrived  chan struct{} // sent once per burst by the last reader; capacity 1, so that the reader goes on at once
}

func newCrowd(perEvent int) *crowd {
	return &crowd{perEvent: perEvent, arrived: make(chan struct{}, 1)}
}

// report adds n to seen. The reader that makes seen reach due sends to arrived.
func (c *crowd) report(n int) {
	if n > 0 && c.seen.Add(int64(n)) == c.due.Load() {
		c.arrived <- struct{}{}
	}
}

// measure sends b.N events in bursts and reports times per delivery. prepare returns a function that sends n events.
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

//go:build unix && full

package scale

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/server/etcdnode"
)

// load is how much there is of everything.
type load struct {
	pods    int
	nodes   int // each with a watch of its own pods
	readers int // watches of all pods
	writes  int // to one pod after the other
}

// costs are what one more of something costs a server, in bytes or nanoseconds of the processor.
type costs struct {
	base     float64 // bytes: nothing but itself, and its etcd
	object   float64 // bytes
	watch    float64 // bytes
	write    float64 // ns: the request, etcd, and what follow counts
	follow   float64 // ns: what a server spends on an event that another server wrote, before it is delivered
	delivery float64 // ns: to one watch
	frame    float64 // bytes on the wire
}

// outcome is what a run took, or will take.
type outcome struct {
	memory    float64 // bytes
	processor float64 // ns for all writes with their deliveries
	frames    float64
	wire      float64 // bytes
}

func (c costs) predict(l load) outcome {
	frames := float64(l.writes * (1 + l.readers))
	return outcome{
		memory:    c.base + c.object*float64(l.pods) + c.watch*float64(l.nodes+l.readers),
		processor: c.write*float64(l.writes) + c.delivery*frames,
		frames:    frames,
		wire:      c.frame * frames,
	}
}

func node(n int) string    { return "node-" + strconv.Itoa(n) }
func podName(n int) string { return "web-6d4cf56db6-" + strconv.Itoa(n) }

// pod is about as large as a small real one.
func pod(n, nodes int) *corev1.Pod {
	env := make([]corev1.EnvVar, 12)
	for i := range env {
		env[i] = corev1.EnvVar{Name: "SETTING_" + strconv.Itoa(i), Value: "a value of some length"}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(n), Namespace: "default", Labels: map[string]string{"app": "web",
				"pod-template-hash": "6d4cf56db6"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet",
				Name: "web-6d4cf56db6", UID: "2f6c1f0e-7b0a-4f4b-9c55-0d3a3a7e21b4"}},
		},
		Spec: corev1.PodSpec{
			NodeName: node(n % nodes),
			Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/web:v1.42.0", Env: env},
				{Name: "proxy", Image: "registry.example.com/mesh/proxy:v2.7.1", Env: env}},
		},
	}
}

// site is a server on an etcd of its own, and its clients.
type site struct {
	server  *pipeline.Server
	client  etcd3.Client
	clients *clients
	load    load // until now
}

func start(t *testing.T) *site {
	etcd, err := etcdnode.Start(t.Context(), etcdnode.Options{Dir: t.TempDir(), Quota: 4 << 30})
	require.NoError(t, err)
	t.Cleanup(func() { etcd.Close() })
	s := &site{client: etcd3.NewClient(etcd.Client())}
	s.server = s.serve(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	front := &http.Server{Handler: s.server.Handler()}
	go front.Serve(listener)
	t.Cleanup(func() { front.Close() })
	s.clients = startClients(t, "http://"+listener.Addr().String())
	return s
}

// serve runs a server until the test ends.
func (s *site) serve(t *testing.T) *pipeline.Server {
	server, err := pipeline.NewServer(pipeline.ServerConfig{Client: s.client, Clock: clock.RealClock{},
		UseWatchList: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { server.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	require.NoError(t, server.WaitReady(t.Context()))
	return server
}

// grow adds pods.
func (s *site) grow(t *testing.T, pods, nodes int) {
	each(s.load.pods, pods, func(n int) {
		if _, err := s.server.Pods().Create(t.Context(), "default", pod(n, nodes),
			&metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
	s.load.pods, s.load.nodes = pods, nodes
}

// newest is the version from which a new watch begins.
func (s *site) newest(t *testing.T) string {
	t.Helper()
	list, err := s.server.Pods().List(t.Context(), "default", &metainternalversion.ListOptions{Limit: 1})
	require.NoError(t, err)
	return list.(*corev1.PodList).ResourceVersion
}

func (s *site) open(t *testing.T, command string, n int) {
	s.clients.do(t, fmt.Sprintf("%s 0 %d %s", command, n, s.newest(t)))
}

// write writes to n pods, waits until every watch has what it is to have, and returns what that took.
func (s *site) write(t *testing.T, n, readers int) (took outcome) {
	t.Helper()
	framesBefore, bytesBefore := s.clients.do(t, "count")
	before := processorTime()
	s.clients.do(t, fmt.Sprintf("write 0 %d", n))
	want := framesBefore + int64(n*(1+readers))
	var frames, bytes int64
	arrived := func() bool {
		frames, bytes = s.clients.do(t, "count")
		return frames >= want
	}
	require.True(t, eventually.Did(5*time.Minute, arrived), "%d frames of %d", frames, want)
	return outcome{processor: float64(processorTime() - before), frames: float64(frames - framesBefore),
		wire: float64(bytes - bytesBefore), memory: inUse()}
}

// processorTime is what this process has computed until now. On a machine that is shared it says more than the clock on
// the wall.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// inUse is the memory of this process that is in use, in bytes.
func inUse() float64 {
	for range 3 { // pools are emptied by the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// measure finds out what one more of each thing costs.
func measure(t *testing.T, l load) (c costs) {
	s := start(t)
	c.base = inUse()
	s.grow(t, l.pods, l.nodes)
	withPods := inUse()
	c.object = (withPods - c.base) / float64(l.pods)
	s.open(t, "nodes", l.nodes)
	c.watch = (inUse() - withPods) / float64(l.nodes)
	s.write(t, l.writes, 0) // the first of everything: buffers grow
	few := s.write(t, l.writes, 0)
	s.serve(t)
	followed := s.write(t, l.writes, 0)
	// little beside a write: what else happens may outweigh it
	c.follow = max(0, (followed.processor-few.processor)/float64(l.writes))
	s.open(t, "all", l.readers)
	many := s.write(t, l.writes, l.readers)
	c.delivery = (many.processor - followed.processor) / (many.frames - followed.frames)
	c.frame = many.wire / many.frames
	c.write = few.processor/float64(l.writes) - c.delivery
	return c
}

// TestScale measures what one more of each thing costs, predicts what much more costs, and runs that: minutes, and 2
// GB.
func TestScale(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // as cmd/viz
	small := load{pods: 5000, nodes: 300, readers: 30, writes: 2000}
	var c costs
	t.Run("measure", func(t *testing.T) { c = measure(t, small) })
	t.Logf("%+v: one more object %.0f B, watch %.0f B, frame %.0f B; a write %.0f µs, to follow one %.0f µs, a "+
		"delivery %.1f µs",
		small, c.object, c.watch, c.frame, c.write/1e3, c.follow/1e3, c.delivery/1e3)
	t.Log("\n" + c.cluster())
	large := load{pods: 100_000, nodes: 4950, readers: 50, writes: 2000}
	predicted := c.predict(large)
	t.Run("run", func(t *testing.T) {
		s := start(t)
		s.grow(t, large.pods, large.nodes)
		s.open(t, "nodes", large.nodes)
		s.open(t, "all", large.readers)
		s.write(t, large.writes, large.readers)
		measured := s.write(t, large.writes, large.readers)
		t.Logf("%+v\npredicted: %v\nmeasured:  %v", large, predicted, measured)
		for _, each := range []struct {
			what                string
			predicted, measured float64
			// of the prediction; the processor's time is not held: it depends on what else the machine does
			within float64
		}{
			{"frames", predicted.frames, measured.frames, 0},
			{"bytes on the wire", predicted.wire, measured.wire, 0.05},
			{"memory", predicted.memory, measured.memory, 0.25},
		} {
			if off := math.Abs(each.measured-each.predicted) / each.predicted; off > each.within {
				t.Errorf("%s: predicted %.0f, measured %.0f: %.0f %% off, want at most %.0f %%", each.what,
					each.predicted, each.measured, off*100, each.within*100)
			}
		}
	})
}

func (o outcome) String() string {
	return fmt.Sprintf("%.0f MiB in use, %.2f s of the processor, %.0f frames, %.0f MiB on the wire", o.memory/(1<<20),
		o.processor/1e9, o.frames, o.wire/(1<<20))
}

// cluster is the table for 5,000 nodes, 150,000 pods and 100,000 watches, each server on a machine of its own.
func (c costs) cluster() string {
	const pods, watches, events, readers = 150_000, 100_000, 1000, 200
	var table strings.Builder
	fmt.Fprintln(&table, "| servers | watches each | memory each | processors each | sent by each |")
	fmt.Fprintln(&table, "|---:|---:|---:|---:|---:|")
	for _, servers := range []float64{1, 3, 5, 10, 20} {
		memory := c.base + c.object*pods + c.watch*watches/servers
		deliveries := events * (1 + readers) / servers
		// Each server follows all events, and takes its share of the writes.
		busy := (c.follow*events*(servers-1) + c.write*events) / servers
		fmt.Fprintf(&table, "| %.0f | %.0f | %.1f GiB | %.1f | %.0f MiB/s |\n",
			servers, watches/servers, memory/(1<<30), (busy+c.delivery*deliveries)/1e9, c.frame*deliveries/(1<<20))
	}
	return table.String()
}

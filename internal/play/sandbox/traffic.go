package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
)

const (
	// MaxTraffic is the highest rate of traffic, in changes a second, unless the host sets a lower one.
	MaxTraffic = 10000

	trafficTick    = 10 * time.Millisecond // between two batches
	trafficWriters = 16                    // concurrent changes: etcd commits them together
	trafficPods    = 200                   // that are changed in turn
	// load-0 … load-49: a watch of one node sees a fiftieth
	trafficNodes   = 50
	trafficBacklog = 512 // changes that are due but late; more are dropped
)

// traffic writes changes at a set rate to pods of its own, in the namespace default with the label traffic=listwatch.
// They are on nodes that do not exist, so that no scheduler and no kubelet acts on them. It writes to the storage,
// below HTTP: ten thousand requests a second would measure HTTP and not the machinery behind it.
//
// Its methods may be called from any goroutine.
type traffic struct {
	// Set by newTraffic, never changed.
	storage storage.Interface
	clock   clock.WithTicker
	most    int // changes a second

	changed chan struct{} // sent by setRate, received by Run, never closed; room for one: Run looks at the newest rate
	batch   chan struct{} // holds one value while writes are under way: a lock that can be waited for with a context

	rate    atomic.Int64
	changes atomic.Int64 // that were begun: which pod is next
	written atomic.Uint64
	refused atomic.Value // string: why the newest write that failed did; nil: none has
}

// newTraffic returns traffic of at most so many changes a second; 0: [MaxTraffic].
func newTraffic(pods storage.Interface, clk clock.WithTicker, most int) *traffic {
	return &traffic{storage: pods, clock: clk, most: cmp.Or(most, MaxTraffic), changed: make(chan struct{}, 1),
		batch: make(chan struct{}, 1)}
}

// setRate sets the rate, from 0 to most; 0: no traffic.
func (t *traffic) setRate(rate int) {
	t.rate.Store(int64(rate))
	select {
	case t.changed <- struct{}{}:
	default: // Run has not looked since the last time
	}
}

// TrafficInfo describes the traffic.
type TrafficInfo struct {
	Rate    int    `json:"rate"`            // as set
	Most    int    `json:"most"`            // the highest rate
	Written uint64 `json:"written"`         // changes, ever
	Error   string `json:"error,omitempty"` // why the newest write that failed did; "" if none has
}

func (t *traffic) info() TrafficInfo {
	refused, _ := t.refused.Load().(string)
	return TrafficInfo{Rate: int(t.rate.Load()), Most: t.most, Written: t.written.Load(), Error: refused}
}

// Run writes until ctx is done.
func (t *traffic) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
			t.flow(ctx)
		}
	}
}

// flow writes a batch of due changes every tick, until the rate is 0 or ctx is done. It stops its ticker then: an idle
// one would be shown as the world's next timer.
func (t *traffic) flow(ctx context.Context) {
	ticker := t.clock.NewTicker(trafficTick)
	defer ticker.Stop()
	owed, last := 0.0, t.clock.Now()
	for rate := t.rate.Load(); rate > 0; rate = t.rate.Load() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		now := t.clock.Now()
		owed = math.Min(owed+float64(rate)*now.Sub(last).Seconds(), trafficBacklog)
		last = now
		t.batch <- struct{}{} // settle holds it for a moment only
		var writes errgroup.Group
		writes.SetLimit(trafficWriters)
		for ; owed >= 1 && t.rate.Load() > 0; owed-- {
			writes.Go(func() error { return t.change(ctx) })
		}
		if err := writes.Wait(); err != nil && ctx.Err() == nil {
			t.refused.Store(err.Error())
		}
		<-t.batch
	}
}

// settle returns when every write that began before the newest setRate is over; with a rate of 0, no other follows. The
// error is that of ctx. In a held world the writes are held, and only ctx ends the wait.
func (t *traffic) settle(ctx context.Context) error {
	select {
	case t.batch <- struct{}{}:
		<-t.batch
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// change writes the next pod with a changed annotation.
func (t *traffic) change(ctx context.Context) error {
	n := int(t.changes.Add(1) % trafficPods)
	ctx, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	stamp := strconv.FormatInt(t.clock.Now().UnixNano(), 10)
	update := func(current runtime.Object) (runtime.Object, error) {
		pod := current.(*corev1.Pod)
		if pod.Name == "" {
			*pod = *trafficPod(n)
			pod.CreationTimestamp = metav1.NewTime(t.clock.Now())
		}
		pod.Annotations["now"] = stamp
		return pod, nil
	}
	err := t.storage.GuaranteedUpdate(ctx, storageKey(trafficPod(n)), &corev1.Pod{}, true, nil, update, nil)
	if err == nil {
		t.written.Add(1)
	}
	return err
}

// trafficPod is a pod as the registry would have stored it.
func trafficPod(n int) *corev1.Pod {
	name := fmt.Sprintf("t-%03d", n)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID(name),
			Labels: map[string]string{"traffic": "listwatch"}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			NodeName:   fmt.Sprintf("load-%d", n%trafficNodes),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

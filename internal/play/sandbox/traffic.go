package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

const (
	// MaxTraffic is the highest rate of traffic, in changes a second, unless the host sets a lower one.
	MaxTraffic = 10000

	trafficTick    = 10 * time.Millisecond // the time between two batches
	trafficWriters = 16                    // concurrent changes, which etcd commits together
	trafficPods    = 200                   // pods that the traffic changes in turn
	// Number of nodes, load-0 to load-49: a watch of one node's pods sees one change in fifty.
	trafficNodes   = 50
	trafficBacklog = 512 // maximum number of overdue changes; further ones are dropped
)

// traffic changes its own pods at a set rate. They are in the namespace default, and have the label traffic=listwatch.
// They are bound to nodes that do not exist, so neither the scheduler nor a kubelet acts on them. traffic writes to the
// storage, below HTTP: ten thousand requests a second would load HTTP instead of the machinery behind it.
//
// Its methods may be called from any goroutine.
type traffic struct {
	// Set by newTraffic, never changed.
	storage storage.Interface
	clock   clock.WithTicker
	most    int // the highest rate, in changes a second

	changed chan struct{} // sent by setRate, received by Run, never closed; room for one: Run reads the newest rate
	batch   chan struct{} // a lock, full while a batch is written; unlike a mutex, it allows a wait that ends with ctx

	rate    atomic.Int64
	changes atomic.Int64 // changes begun; picks the next pod
	written atomic.Uint64
	refused atomic.Value // string: the first error of the newest batch that had one; nil: no write has failed
}

// newTraffic returns traffic with a highest rate, in changes a second; 0: [MaxTraffic].
func newTraffic(pods storage.Interface, clk clock.WithTicker, most int) *traffic {
	return &traffic{storage: pods, clock: clk, most: cmp.Or(most, MaxTraffic), changed: make(chan struct{}, 1),
		batch: make(chan struct{}, 1)}
}

// setRate sets the rate, from 0 (no traffic) to most.
func (t *traffic) setRate(rate int) {
	t.rate.Store(int64(rate))
	select {
	case t.changed <- struct{}{}:
	default: // Run has not received the last change yet
	}
}

// TrafficInfo describes the traffic.
type TrafficInfo struct {
	Rate    int    `json:"rate"`            // the rate that was set, in changes a second
	Most    int    `json:"most"`            // the highest rate, in changes a second
	Written uint64 `json:"written"`         // number of changes so far
	Error   string `json:"error,omitempty"` // the first error of the newest batch that had one; "": none has failed
}

func (t *traffic) info() TrafficInfo {
	refused, _ := t.refused.Load().(string)
	return TrafficInfo{Rate: int(t.rate.Load()), Most: t.most, Written: t.written.Load(), Error: refused}
}

// Run makes changes at the set rate until ctx is done.
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

// flow writes, at every tick, the changes that are due, until the rate is 0 or ctx is done. It then stops its
// ticker, which the page would otherwise show as the world's next timer.
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
		t.batch <- struct{}{} // settle holds the lock only for a moment
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

// settle returns when the batch that is being written is over. If the rate is 0, no write follows. In a held world the
// writes are held, too: settle then returns ctx's error when ctx ends.
func (t *traffic) settle(ctx context.Context) error {
	select {
	case t.batch <- struct{}{}:
		<-t.batch
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// change changes an annotation of the next pod, creates the pod if it is missing, and counts the write.
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

// trafficPod returns the n-th pod as the registry would store it.
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

const (
	demoPeriod   = 10 * time.Second // long enough to show each change before the next one
	demoPods     = 4                // the number of pods that the demo keeps, besides those being deleted
	demoSelector = "demo=listwatch"
)

// demo makes gentle traffic, and rests after viewers' writes and while a story runs. Like any client it creates,
// relabels and deletes pods over HTTP, but only its own pods.
type demo struct {
	*Config // set by New, never changed
	client  *listwatch.RESTClient

	rests atomic.Int32 // number of running stories

	// Owned by Run.
	step   int
	made   int    // the number in the newest pod's name; 0: none yet
	looked uint64 // number of the last record that the method viewers has read
}

// Viewers is the pattern, as in a [probe.Query], for the user agents of people: kubectl, browsers, and the page's
// console. After their writes the demo rests ([Config.Log]).
const Viewers = "kubectl|Mozilla|" + WatcherAgent + "*"

// Demo is the user agent of the demo.
const Demo = userAgent + "-demo"

// Run makes a change as soon as the server is ready, then one every ten seconds until ctx is done. It rests while a
// story runs, and for at least ten seconds after a viewer's write.
func (d *demo) Run(ctx context.Context) {
	if d.Pipeline.Server.WaitReady(ctx) != nil {
		return
	}
	d.act(ctx)
	routine.Every(ctx, d.Clock, demoPeriod, func(ctx context.Context) {
		if !d.viewers() && d.rests.Load() == 0 {
			d.act(ctx)
		}
	})
}

// viewers reports whether a viewer has written since the last call.
func (d *demo) viewers() (wrote bool) {
	if d.Log == nil {
		return false
	}
	last := d.Log.Last()
	for r := range d.Log.Between(d.looked, last) {
		wrote = wrote || OfViewers(r)
	}
	d.looked = last
	return wrote
}

// OfViewers reports whether a record is about a viewer's write. It excludes leases and statuses, which programs write.
func OfViewers(r *probe.Record) bool {
	path := r.Texts.Get(probe.FieldPath)
	return viewers.Matches(r) && !strings.HasSuffix(path, "/status") && !strings.Contains(path, "/leases")
}

var viewers = probe.Query{Fields: map[probe.Field]string{
	probe.FieldAgent: Viewers, probe.FieldMethod: "POST|PUT|PATCH|DELETE"}}

// clearDemo deletes the demo's pods, and returns when the informer has seen the deletions, or after a second.
func (s *Sandbox) clearDemo(ctx context.Context) error {
	err := s.deletePods(ctx, func(pod *corev1.Pod) bool { return pod.Labels["demo"] == "listwatch" })
	for n := 0; err == nil && n < 200; n++ {
		theirs := labels.SelectorFromSet(labels.Set{"demo": "listwatch"})
		left := s.config.Pipeline.Client.Pods().Lister().List(theirs)
		if len(left) == 0 {
			break
		}
		err = routine.Sleep(ctx, s.config.Clock, 5*time.Millisecond)
	}
	return err
}

// act lists the demo's pods and makes the next change. It ignores errors, because the next act comes soon.
func (d *demo) act(ctx context.Context) {
	var pods corev1.PodList
	list := d.client.Get().Resource("pods").Namespace(metav1.NamespaceDefault)
	list.VersionedParams(&metav1.ListOptions{LabelSelector: demoSelector, ResourceVersion: "0"})
	if list.Do(ctx).Into(&pods) != nil {
		return
	}
	living := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	d.step++
	switch {
	case len(living) < demoPods:
		d.made++ // even if the pod exists already: the next act tries the next number
		_ = d.client.Post().Resource("pods").Namespace(metav1.NamespaceDefault).Body(demoPod(d.made)).Do(ctx).Error()
	case d.step%2 == 0:
		d.relabel(ctx, &living[d.step%len(living)])
	default:
		oldest := slices.MinFunc(living, func(a, b corev1.Pod) int {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		})
		_ = d.client.Delete().Resource("pods").Namespace(oldest.Namespace).Name(oldest.Name).Do(ctx).Error()
	}
}

// demoPod returns the n-th pod, n >= 1. Three apps take turns: web-1, api-2, job-3. A job's pod ends by itself, and
// then no longer matches the scheduler's selector, although it still exists.
func demoPod(n int) *corev1.Pod {
	app := []string{"job", "web", "api"}[n%3]
	restart := corev1.RestartPolicyAlways
	if app == "job" {
		restart = corev1.RestartPolicyNever
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", app, n), Labels: map[string]string{"app": app, "demo": "listwatch",
				"tier": "blue"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: restart, TerminationGracePeriodSeconds: new(int64(2)),
			Containers: []corev1.Container{{
				Name: app, Image: "example.com/" + app + ":1", Resources: corev1.ResourceRequirements{
					Requests: requests},
			}},
		},
	}
}

// relabel moves a pod to the other tier, so that the pod leaves and enters watches of one tier.
func (d *demo) relabel(ctx context.Context, pod *corev1.Pod) {
	tier := "green"
	if pod.Labels["tier"] == tier {
		tier = "blue"
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"tier":%q}}}`, tier)
	request := d.client.Patch(types.MergePatchType).Resource("pods").Namespace(pod.Namespace).Name(pod.Name)
	_ = request.Body(patch).Do(ctx).Error()
}

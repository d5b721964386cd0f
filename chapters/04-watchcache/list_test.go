package watchcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
)

const root = "/registry/pods/"

func three(t *testing.T) *fixture {
	f := newFixture(t, 10)
	f.list(5, pod("kube-system/d", 1, "n1"), pod("default/b", 2, "n1"), pod("default/a", 3, "n2"), pod("default2/c", 4,
		"n1"))
	return f
}

func TestAnIndexNarrowsAListAndKeepsItsOrder(t *testing.T) {
	f := three(t)
	opts := storage.ListOptions{ResourceVersion: "0", Recursive: true}
	opts.Predicate.Field = fields.OneTermEqualSelector("spec.nodeName", "n1")
	list, err := f.GetList(t.Context(), root, opts)
	f.must(err)
	f.is("indexed", list.Indexed, "true")
	f.is("elements", names(list), "default/b 2, default2/c 4, kube-system/d 1")
	list, err = f.GetList(t.Context(), root+"default/", opts)
	f.must(err)
	f.is("elements of a namespace", names(list), "default/b 2")

	f.must(f.Update(pod("default/b", 6, "n2")))
	f.delete("kube-system/d", 7)
	list, err = f.GetList(t.Context(), root, opts)
	f.must(err)
	f.is("after a move and a deletion", names(list), "default2/c 4")

	for rv := uint64(10); rv < 50; rv++ { // an index has no order
		f.must(f.Add(pod(fmt.Sprint("default/p", rv), rv, "n1")))
	}
	list, err = f.GetList(t.Context(), root+"default/", opts)
	f.must(err)
	byKey := func(a, b *Element) int { return strings.Compare(a.Key, b.Key) }
	f.is("in order", slices.IsSortedFunc(list.Elements, byKey), "true")
}

func TestAnIndexForgetsValuesThatNobodyHasAnyMore(t *testing.T) {
	f := newFixture(t, 10)
	f.list(1, pod("default/a", 1, "n0"))
	for rv := uint64(2); rv < 50; rv++ {
		f.must(f.Update(pod("default/a", rv, fmt.Sprint("n", rv))))
	}
	f.is("values of a pod that moves", len(f.store.index), "1")
	f.delete("default/a", 50)
	f.is("values of none", len(f.store.index), "0")
}

func TestSnapshotsGoWithTheRing(t *testing.T) {
	f := newFixture(t, 4)
	f.list(10)
	f.fill(11, 20) // 16 … 19
	f.is("snapshots", f.Snapshot().Snapshots, "4")
	f.is("the oldest", names(f.exact(16)), "default/x 16")
	for _, rv := range []uint64{3, 15} {
		assert.Fails(t, assert.ErrorOf(f.snapshotAt(t.Context(), "", rv)), apierrors.IsResourceExpired, "at %d", rv)
		f.is("has", f.HasSnapshot(rv), "false")
	}
	f.is("has the future", f.HasSnapshot(100), "true")
}

func TestSnapshotsGoWithTheStoragesOwnHistory(t *testing.T) {
	f := newFixture(t, 100)
	f.list(10)
	f.fill(11, 13) // 11, 12
	f.fill(15, 17) // 15, 16
	f.Compact(14)
	f.is("snapshots", f.Snapshot().Snapshots, "3")
	f.is("the compacted version itself", names(f.exact(14)), "default/x 12")
	f.is("a newer one", names(f.exact(15)), "default/x 15")
	for _, rv := range []uint64{10, 12, 13} {
		assert.Fails(t, assert.ErrorOf(f.snapshotAt(t.Context(), "", rv)), apierrors.IsResourceExpired, "at %d", rv)
		f.is("has", f.HasSnapshot(rv), "false")
	}
	interval, err := f.since(10)
	f.must(err)
	events := f.events(interval)
	f.is("events of the ring", len(events), "4")
}

func TestTheStateIsStreamedInKeyOrderAtOneVersion(t *testing.T) {
	f := newFixture(t, 10)
	var pods []*corev1.Pod
	for i := range 250 { // more than two batches; 099 ends the first one, and 099-1 begins the second
		id := fmt.Sprintf("default/%03d", i)
		if i > 0 && i%2 == 0 {
			id = fmt.Sprintf("default/%03d-1", i-1)
		}
		pods = append(pods, pod(id, uint64(i+1), ""))
	}
	f.list(300, pods...)
	interval := f.state(root, true)
	f.delete("default/000", 301) // after the starting point: not part of it
	events := f.events(interval)
	f.is("events", len(events), "250")
	assert.True(t, slices.IsSorted(events), "not in key order")
	for _, event := range events {
		require.True(t, strings.HasSuffix(event, " 300"), "%s: not at the cache's version", event)
	}
}

func TestOnlyWhatLiesBelowTheKeyIsStreamed(t *testing.T) {
	f := three(t)
	for _, c := range []struct {
		key       string
		recursive bool
		want      string
	}{
		{root + "default/", true, "[ADDED default/a 5 ADDED default/b 5]"},
		{root + "default/a", false, "[ADDED default/a 5]"},
		{root + "default/z", false, "[]"},
	} {
		events := f.events(f.state(c.key, c.recursive))
		f.is(c.key, events, c.want)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a cache whose storage is the test: what it would answer stands in the fields.
type fixture struct {
	*WatchCache
	t        *testing.T
	handled  []*Event
	current  uint64       // the storage's version
	progress atomic.Int64 // requests for progress
	waits    waits
}

// waits are what ReadWait was told.
type waits struct {
	mu      sync.Mutex // guards the field below
	seconds []float64
}

func (w *waits) Observe(seconds float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seconds = append(w.seconds, seconds)
}

func newFixture(t *testing.T, capacity int) *fixture {
	f := &fixture{t: t}
	f.WatchCache = New(Config{
		KeyFunc:                   keyFunc,
		GetAttrs:                  storage.DefaultNamespaceScopedAttr,
		Trigger:                   &storage.Trigger{Field: "spec.nodeName", ValueOf: nodeName},
		EventHandler:              func(event *Event) { f.handled = append(f.handled, event) },
		RequestWatchProgress:      func(context.Context) error { f.progress.Add(1); return nil },
		GetCurrentResourceVersion: func(context.Context) (uint64, error) { return f.current, nil },
		ReadWait:                  &f.waits,
		Clock:                     clock.RealClock{},
		RingCapacity:              capacity,
		Probe:                     probetest.Probe(t, "cacher"),
	})
	return f
}

func keyFunc(obj any) (string, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return "", errors.New("not a pod")
	}
	return "/registry/pods/" + p.Namespace + "/" + p.Name, nil
}

func nodeName(obj runtime.Object) string { return obj.(*corev1.Pod).Spec.NodeName }

// pod returns a pod such as ("default/a", 5, "n1").
func pod(id string, rv uint64, node string) *corev1.Pod {
	namespace, name, _ := strings.Cut(id, "/")
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: strconv.FormatUint(rv, 10)},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func (f *fixture) list(rv uint64, pods ...*corev1.Pod) {
	f.t.Helper()
	var items []any
	for _, p := range pods {
		items = append(items, p)
	}
	require.NoError(f.t, f.Replace(items, strconv.FormatUint(rv, 10)))
}

func (f *fixture) add(id string, rv uint64)    { f.must(f.Add(pod(id, rv, ""))) }
func (f *fixture) update(id string, rv uint64) { f.must(f.Update(pod(id, rv, ""))) }
func (f *fixture) delete(id string, rv uint64) { f.must(f.Delete(pod(id, rv, ""))) }

func (f *fixture) must(err error) {
	f.t.Helper()
	require.NoError(f.t, err)
}

// fill adds events with the versions [from, to).
func (f *fixture) fill(from, to uint64) {
	for rv := from; rv < to; rv++ {
		f.update("default/x", rv)
	}
}

func (f *fixture) since(rv uint64) (*Interval, error) {
	no := false
	return f.begin(rv, "/registry/pods/", storage.ListOptions{Recursive: true, SendInitialEvents: &no})
}

func (f *fixture) begin(rv uint64, key string, opts storage.ListOptions) (begun *Interval, err error) {
	err = f.BeginWatch(rv, key, opts, func(interval *Interval, _ uint64) { begun = interval })
	return begun, err
}

func (f *fixture) state(key string, recursive bool) *Interval {
	f.t.Helper()
	interval, err := f.begin(0, key, storage.ListOptions{Recursive: recursive})
	f.must(err)
	return interval
}

// events is [read] of an interval that the ring keeps up with.
func (f *fixture) events(interval *Interval) []string {
	f.t.Helper()
	events, err := read(interval)
	f.must(err)
	return events
}

// read returns "ADDED default/a 5" for each event that is left.
func read(interval *Interval) ([]string, error) {
	var events []string
	for {
		event, err := interval.Next()
		if err != nil || event == nil {
			return events, err
		}
		events = append(events, describe(event))
	}
}

func describe(event *Event) string {
	return fmt.Sprintf("%s %s %d", event.Type, strings.TrimPrefix(event.Key, "/registry/pods/"), event.ResourceVersion)
}

// names returns "default/a 5" for each object of a list.
func names(list List) string {
	var all []string
	for _, e := range list.Elements {
		p := e.Object.(*corev1.Pod)
		all = append(all, p.Namespace+"/"+p.Name+" "+p.ResourceVersion)
	}
	return strings.Join(all, ", ")
}

func (f *fixture) is(what string, got any, want string) {
	f.t.Helper()
	assert.Equal(f.t, want, fmt.Sprint(got), "%s:\n got %v\nwant %v", what, got, want)
}

package watchcache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a cache whose storage is the test: what it would answer stands in the fields.
type fixture struct {
	*WatchCache
	t        *testing.T
	handled  []*Event
	current  uint64       // what the storage says its version is
	progress atomic.Int64 // how often it was asked for progress
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

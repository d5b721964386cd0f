package sidebyside

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
)

// mode is the configuration of both informers.
type mode struct {
	delta     bool // DeltaFIFO, not RealFIFO
	watchList bool
	resync    time.Duration
	transform bool
}

func (m mode) queue() string {
	if m.delta {
		return "DeltaFIFO"
	}
	return "RealFIFO"
}

func (m mode) String() string {
	if m.watchList {
		return m.queue() + ",watch-list"
	}
	return m.queue() + ",list"
}

// follower is one of the two compared informers.
type follower struct {
	run   func(ctx context.Context)
	join  func(h *handler, resync *time.Duration) (synced func() bool, leave func() error)
	store interface {
		ListKeys() []string
		GetByKey(key string) (any, bool, error)
		LastStoreSyncResourceVersion() string
	}
	lastSync func() string // the version of the reflector's last list or event
	synced   func() bool
}

func (f *follower) pod(key string) *corev1.Pod {
	obj, _, _ := f.store.GetByKey(key)
	return obj.(*corev1.Pod)
}

// diary collects lines, one for each action.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// read returns the lines since the last call.
func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

// handler collects its calls in the diary. Both sides use it; only their tombstones differ.
type handler struct {
	diary
	name string
}

func (h *handler) OnAdd(obj any, isInInitialList bool) {
	if isInInitialList {
		h.note("add %s initial", nameOf(obj))
		return
	}
	h.note("add %s", nameOf(obj))
}

func (h *handler) OnUpdate(old, obj any) { h.note("update %s from %s", nameOf(obj), nameOf(old)) }

func (h *handler) OnDelete(obj any) {
	switch tombstone := obj.(type) {
	case deltafifo.DeletedFinalStateUnknown:
		h.note("delete %s unseen %s", tombstone.Key, nameOf(tombstone.Obj))
	case cache.DeletedFinalStateUnknown:
		h.note("delete %s unseen %s", tombstone.Key, nameOf(tombstone.Obj))
	default:
		h.note("delete %s", nameOf(obj))
	}
}

// nameOf returns a pod's namespace, name and version, as in "default/a@5", followed by the marks that transform adds.
func nameOf(obj any) string {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Sprintf("%T", obj)
	}
	return fmt.Sprintf("%s/%s@%s%s", pod.Namespace, pod.Name, pod.ResourceVersion, pod.Labels["transformed"])
}

// transform adds a mark to a pod each time it is applied.
func transform(obj any) (any, error) {
	pod := obj.(*corev1.Pod).DeepCopy()
	metav1.SetMetaDataLabel(&pod.ObjectMeta, "transformed", pod.Labels["transformed"]+"'")
	return pod, nil
}

// reasonOf returns "refused" or the reason of an API error. Both sides have this part of an error in common.
func reasonOf(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused"
	}
	return string(apierrors.ReasonForError(err))
}

func newOurFollower(s *apiServer, m mode, errs *diary) *follower {
	cfg := informer.Config{
		Name: "pods", ListerWatcher: s, ExampleObject: &corev1.Pod{}, Clock: clock.RealClock{},
		Indexers:     indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
		ResyncPeriod: m.resync, UseWatchList: m.watchList, FIFO: informer.FIFOReal,
		WatchErrorHandler: func(_ context.Context, _ *reflector.Reflector, err error) {
			errs.note("error %s", reasonOf(err))
		},
	}
	if m.delta {
		cfg.FIFO = informer.FIFODelta
	}
	if m.transform {
		cfg.Transform = transform
	}
	i := informer.NewSharedIndexInformer(cfg)
	join := func(h *handler, resync *time.Duration) (func() bool, func() error) {
		registration := must(i.AddEventHandlerWithOptions(h, informer.HandlerOptions{Name: h.name,
			ResyncPeriod: resync}))
		return registration.HasSynced, func() error { return i.RemoveEventHandler(registration) }
	}
	return &follower{i.Run, join, i.GetIndexer(), i.LastSyncResourceVersion, i.HasSynced}
}

// gates replaces client-go's feature gates: mode chooses the queue, and whether the first list is a watch.
type gates struct {
	features.Gates
	mode mode
}

var defaultGates = features.FeatureGates()

func (g gates) Enabled(key features.Feature) bool {
	switch key {
	case features.InOrderInformers, features.AtomicFIFO, features.InOrderInformersBatchProcess,
		features.UnlockWhileProcessingFIFO:
		return !g.mode.delta
	case features.WatchListClient:
		return g.mode.watchList
	}
	return g.Gates.Enabled(key)
}

func useGates(tb testing.TB, m mode) {
	features.ReplaceFeatureGates(gates{Gates: defaultGates, mode: m})
	tb.Cleanup(func() { features.ReplaceFeatureGates(defaultGates) })
}

func newTheirFollower(s *apiServer, m mode, errs *diary) *follower {
	i := cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{ListWithContextFunc: s.List,
		WatchFuncWithContext: s.Watch}, &corev1.Pod{}, cache.SharedIndexInformerOptions{
		ResyncPeriod: m.resync, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	})
	err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { errs.note("error %s", reasonOf(err)) })
	if m.transform {
		err = errors.Join(err, i.SetTransform(transform))
	}
	must(i, err)
	join := func(h *handler, resync *time.Duration) (func() bool, func() error) {
		registration := must(i.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: resync}))
		return registration.HasSynced, func() error { return i.RemoveEventHandler(registration) }
	}
	return &follower{i.RunWithContext, join, i.GetStore(), i.LastSyncResourceVersion, i.HasSynced}
}

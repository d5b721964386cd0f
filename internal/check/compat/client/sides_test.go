package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
)

// mode is how both informers are built.
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

// side is one of the two informers that are compared.
type side interface {
	run(ctx context.Context)
	join(h *handler, resync *time.Duration) (synced func() bool, leave func() error)
	keys() []string // what the store holds
	pod(key string) *corev1.Pod
	versions() string // of the store and of the reflector
	synced() bool
}

// diary is what one side does, line by line.
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

// handler notes what it is told. It serves both sides: their interfaces are the same but for the tombstone.
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

// nameOf returns "default/a@5", with what a transformation left behind.
func nameOf(obj any) string {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Sprintf("%T", obj)
	}
	return fmt.Sprintf("%s/%s@%s%s", pod.Namespace, pod.Name, pod.ResourceVersion, pod.Labels["transformed"])
}

// transform marks a pod each time it is applied.
func transform(obj any) (any, error) {
	pod := obj.(*corev1.Pod).DeepCopy()
	metav1.SetMetaDataLabel(&pod.ObjectMeta, "transformed", pod.Labels["transformed"]+"'")
	return pod, nil
}

// reasonOf returns what is the same in the errors of both sides.
func reasonOf(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused"
	}
	return string(apierrors.ReasonForError(err))
}

// ours is our informer.
type ours struct{ *informer.SharedIndexInformer }

func newOurs(s *server, m mode, errs *diary) side {
	cfg := informer.Config{
		Name: "pods", ListerWatcher: s, ExampleObject: &corev1.Pod{}, Clock: clock.RealClock{},
		Indexers:     indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
		ResyncPeriod: m.resync, UseWatchList: m.watchList, FIFO: informer.FIFOReal,
		WatchErrorHandler: func(_ context.Context, _ *reflector.Reflector, err error) { errs.note("error %s", reasonOf(err)) },
	}
	if m.delta {
		cfg.FIFO = informer.FIFODelta
	}
	if m.transform {
		cfg.Transform = transform
	}
	return ours{informer.NewSharedIndexInformer(cfg)}
}

func (o ours) run(ctx context.Context) { o.Run(ctx) }
func (o ours) synced() bool            { return o.HasSynced() }
func (o ours) keys() []string          { return o.GetStore().ListKeys() }

func (o ours) pod(key string) *corev1.Pod {
	obj, _, _ := o.GetStore().GetByKey(key)
	return obj.(*corev1.Pod)
}

func (o ours) versions() string {
	return o.GetStore().LastStoreSyncResourceVersion() + " " + o.LastSyncResourceVersion()
}

func (o ours) join(h *handler, resync *time.Duration) (func() bool, func() error) {
	registration, err := o.AddEventHandlerWithOptions(h, informer.HandlerOptions{Name: h.name, ResyncPeriod: resync})
	if err != nil {
		panic(err)
	}
	return registration.HasSynced, func() error { return o.RemoveEventHandler(registration) }
}

// upstream is client-go's informer.
type upstream struct{ cache.SharedIndexInformer }

// gates answers for client-go's feature gates, so that it builds what it no longer does by default.
type gates struct {
	features.Gates
	mode mode
}

var defaultGates = features.FeatureGates()

func (g gates) Enabled(key features.Feature) bool {
	switch key {
	case features.InOrderInformers:
		return !g.mode.delta
	case features.AtomicFIFO, features.InOrderInformersBatchProcess, features.UnlockWhileProcessingFIFO:
		return !g.mode.delta
	case features.WatchListClient:
		return g.mode.watchList
	}
	return g.Gates.Enabled(key)
}

func useGates(m mode) { features.ReplaceFeatureGates(gates{Gates: defaultGates, mode: m}) }

// listerWatcher is a server as client-go wants it.
type listerWatcher struct{ *server }

func (l listerWatcher) List(opts metav1.ListOptions) (runtime.Object, error) {
	return l.server.List(context.Background(), opts)
}

func (l listerWatcher) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return l.server.Watch(context.Background(), opts)
}

func newUpstream(s *server, m mode, errs *diary) side {
	useGates(m)
	i := cache.NewSharedIndexInformerWithOptions(listerWatcher{s}, &corev1.Pod{}, cache.SharedIndexInformerOptions{
		ResyncPeriod: m.resync, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	})
	i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { errs.note("error %s", reasonOf(err)) })
	if m.transform {
		i.SetTransform(transform)
	}
	return upstream{i}
}

func (u upstream) run(ctx context.Context) { u.RunWithContext(ctx) }
func (u upstream) synced() bool            { return u.HasSynced() }
func (u upstream) keys() []string          { return u.GetStore().ListKeys() }

func (u upstream) pod(key string) *corev1.Pod {
	obj, _, _ := u.GetStore().GetByKey(key)
	return obj.(*corev1.Pod)
}

func (u upstream) versions() string {
	return u.GetStore().LastStoreSyncResourceVersion() + " " + u.LastSyncResourceVersion()
}

func (u upstream) join(h *handler, resync *time.Duration) (func() bool, func() error) {
	registration, err := u.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: resync})
	if err != nil {
		panic(err)
	}
	return registration.HasSynced, func() error { return u.RemoveEventHandler(registration) }
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

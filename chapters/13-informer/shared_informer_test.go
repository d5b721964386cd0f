package informer

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/handlercalls"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type recorder = handlercalls.Recorder

var errBroken = errors.New("broken")

// bench is an informer over a fake server, in a bubble.
type bench struct {
	*SharedIndexInformer
	t      *testing.T
	server *fakeServer
	end    func()
}

// newBench returns a bench whose server has two pods.
func newBench(t *testing.T, cfg Config) *bench {
	b := &bench{t: t, server: newFakeServer("a", "b")}
	cfg.Name, cfg.ListerWatcher, cfg.ExampleObject, cfg.Clock = "pods", b.server, &corev1.Pod{}, clock.RealClock{}
	cfg.Indexers = indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc}
	cfg.Jitter, cfg.Probe = func() float64 { return 0 }, probetest.Probe(t, "informer")
	b.SharedIndexInformer = NewSharedIndexInformer(cfg)
	return b
}

func (b *bench) start() { b.end = bubble.Go(b.t, "informer.Run", b.Run) }

func (b *bench) run() { b.start(); synctest.Wait() }

func (b *bench) add(h processor.ResourceEventHandler, opts HandlerOptions) processor.Registration {
	b.t.Helper()
	return require.Value(b.AddEventHandlerWithOptions(h, opts))(b.t)
}

func (b *bench) stored() map[string]string {
	state := map[string]string{}
	for _, obj := range b.GetIndexer().List() {
		state["default/"+handlercalls.Name(obj)] = obj.(*corev1.Pod).ResourceVersion
	}
	return state
}

// variants runs test in a bubble for both queues and both ways to a first list, which is of two pods.
func variants(t *testing.T, test func(t *testing.T, b *bench)) {
	for _, fifo := range []string{FIFOReal, FIFODelta} {
		for _, watchList := range []bool{false, true} {
			bubble.Run(t, fmt.Sprintf("%s/watchlist=%v", fifo, watchList), func(t *testing.T) {
				test(t, newBench(t, Config{FIFO: fifo, UseWatchList: watchList}))
			})
		}
	}
}

// The handler is called by the goroutine that changes the store, and looks at once: no race decides what it finds.
func TestTheStoreComesFirst(t *testing.T) {
	state := func(obj any) string { return fmt.Sprintf("%s@%d", handlercalls.Name(obj), deltafifo.VersionOf(obj)) }
	store := indexer.NewIndexer(indexer.Config{})
	processed := &deltaProcessor{clientState: store, handler: processor.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			_, exists, _ := store.GetByKey("default/a")
			assert.True(t, exists, "told of %s, the store does not hold it yet", state(obj))
		},
		UpdateFunc: func(_, obj any) {
			stored, _, _ := store.GetByKey("default/a")
			assert.True(t, stored == obj, "told of %s, the store holds an older state", state(obj))
		},
		DeleteFunc: func(obj any) {
			_, exists, _ := store.GetByKey("default/a")
			assert.True(t, !exists, "told that %s is gone, the store still holds it", state(obj))
		},
	}}
	for rv, typ := range []deltafifo.DeltaType{deltafifo.Added, deltafifo.Updated, deltafifo.Deleted} {
		delta := deltafifo.Delta{Type: typ, Key: "default/a", Object: pod("a", fmt.Sprint(rv+1))}
		require.NoError(t, processed.processDeltas(deltafifo.Deltas{delta}, false))
	}
}

func TestResyncPeriodsAreNegotiated(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := NewSharedIndexInformer(Config{Clock: clock.RealClock{}, ResyncPeriod: time.Minute})
		ms, hour, ten := time.Millisecond, time.Hour, 10*time.Second
		for _, tc := range []struct {
			name        string
			requested   *time.Duration
			started     bool
			want, check time.Duration
		}{
			{"the informer's own", nil, false, time.Minute, time.Minute},
			{"longer", &hour, false, time.Hour, time.Minute},
			{"shorter lowers the check period", &ten, false, 10 * time.Second, 10 * time.Second},
			{"too short is raised to a second", &ms, false, time.Second, time.Second},
			{"shorter than the check period, after the start", &ms, true, time.Second, time.Second},
		} {
			s.started = tc.started
			if got := s.negotiateResyncLocked(tc.requested); got != tc.want || s.resyncCheckPeriod != tc.check {
				t.Errorf("%s: %v, checked every %v, want %v, %v", tc.name, got, s.resyncCheckPeriod, tc.want, tc.check)
			}
		}
	})
}

func TestHandlersMayComeAndGoWhileEventsFlow(t *testing.T) {
	variants(t, func(t *testing.T, b *bench) {
		b.run()
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 300 {
				b.server.set([]string{"a", "b", "c"}[i%3])
			}
		})
		for range 3 {
			wg.Go(func() {
				for range 20 {
					registration, err := b.AddEventHandler(&recorder{})
					if err != nil {
						t.Error(err)
						return
					}
					b.Snapshot()
					assert.NoError(t, b.RemoveEventHandler(registration))
					<-registration.ShutdownChan()
				}
			})
		}
		wg.Wait()
		b.end()
	})
}

// interrupted is what the informer tells of changes; before the first one is told it calls between.
type interrupted struct {
	processor.ResourceEventHandler
	once    sync.Once
	between func()
}

func (i *interrupted) OnAdd(obj any, isInInitialList bool) {
	i.once.Do(i.between)
	i.ResourceEventHandler.OnAdd(obj, isInInitialList)
}

// addingWaits reports whether a goroutine that adds a handler waits for a lock.
func addingWaits() bool {
	stacks := make([]byte, 1<<20)
	for _, goroutine := range strings.Split(string(stacks[:goruntime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(goroutine, "[sync.") && strings.Contains(goroutine, "AddEventHandlerWithOptions") {
			return true
		}
	}
	return false
}

// A handler comes between two steps: the store has changed, and no handler has been told.
func TestAHandlerThatComesBetweenStoreAndTellingHearsEverythingOnce(t *testing.T) {
	variants(t, func(t *testing.T, b *bench) {
		late := &recorder{}
		var group routine.Group
		var added atomic.Bool
		b.deltas.handler = &interrupted{ResourceEventHandler: b.processor, between: func() {
			group.Go(t.Context(), "test.late", func(context.Context) {
				b.add(late, HandlerOptions{})
				added.Store(true)
			})
			for !added.Load() && !addingWaits() {
				goruntime.Gosched()
			}
		}}
		b.run()
		group.Wait()
		b.end()
		told := late.Take()
		for _, pod := range []string{"a@1", "b@2"} {
			assert.Equal(t, 1, strings.Count(strings.Join(told, " ")+" ", "+"+pod+"* "), "OnAdd of %s: %q", pod, told)
		}
	})
}

func TestAfterTheEnd(t *testing.T) {
	variants(t, func(t *testing.T, b *bench) {
		r := &recorder{Delay: time.Minute}
		registration := b.add(r, HandlerOptions{})
		b.run()
		began := time.Now()
		b.end()
		assert.Equal(t, time.Minute, time.Since(began), "Run returned while a handler was running: after")
		<-registration.ShutdownChan()
		assert.Equal(t, 1, len(r.Take()), "calls: only the one that was running")
		assert.True(t, assert.ErrorOf(b.AddEventHandler(r)) != nil, "a handler was added")
		assert.True(t, b.AddIndexers(indexer.Indexers{"x": indexer.MetaNamespaceIndexFunc}) != nil,
			"an indexer was added")
		assert.NoError(t, b.RemoveEventHandler(registration))
		b.Run(t.Context()) // returns at once
		assert.Equal(t, 2, len(b.stored()), "objects of the last state")
	})
}

func TestWaiting(t *testing.T) {
	variants(t, func(t *testing.T, b *bench) {
		r := &recorder{Delay: time.Second}
		registration := b.add(r, HandlerOptions{Name: "slow"})
		ctx := t.Context()
		b.start()
		ended, end := context.WithCancel(ctx)
		end()
		assert.False(t, WaitFor(ended, registration.HasSyncedChecker()), "waited in vain, and was not told")
		began := time.Now()
		assert.True(t, WaitFor(ctx, b.HasSyncedChecker()) && time.Since(began) == 0, "the store after %v",
			time.Since(began))
		assert.True(t, WaitFor(ctx, registration.HasSyncedChecker()) && time.Since(began) == 2*time.Second,
			"the handler after %v, want the two seconds it takes", time.Since(began))
		b.end()
		assert.True(t, WaitFor(ctx, b.HasSyncedChecker(), registration.HasSyncedChecker()),
			"what is done stays done, even if ctx is")
	})
}

// A gate that holds the distributor, and with it a DeltaFIFO's lock, must not hold who looks at the queue.
func TestSnapshotDoesNotWaitForADistribution(t *testing.T) {
	variants(t, func(t *testing.T, b *bench) {
		b.run()
		gate := make(chan struct{})
		b.deltas.handler = processor.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { <-gate }}
		b.server.set("a")
		synctest.Wait()
		require.True(t, !b.deltasMu.TryLock(), "the informer distributes nothing")
		b.server.set("a")
		got := b.Snapshot()
		assert.True(t, got.Indexer.Objects == 2 && got.Indexer.ResourceVersion != "2", "%+v", got)
		close(gate)
		b.end()
	})
}

func TestObjectsThatCannotBeProcessedAreCountedAndSkipped(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Transform: func(any) (any, error) { return 3, nil }}) // which has no key
		b.run()
		assert.Equal(t, 1, b.Snapshot().ProcessErrors, "errors")
		b.end()
	})
}

// fakeClient serves pods from a fakeServer and nothing of anything else.
type fakeClient struct{ pods *fakeServer }

func (c *fakeClient) ListWatch(resource, _ string, _ func(*metav1.ListOptions)) reflector.ListerWatcher {
	if resource == "pods" {
		return c.pods
	}
	return emptyServer{}
}

// emptyServer has no objects, and watches on which nothing happens.
type emptyServer struct{}

func (emptyServer) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
}

func (emptyServer) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFake()
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

type podNames struct {
	processor.TypedResourceEventHandler[*corev1.Pod]
	names []string
}

func (p *podNames) OnAdd(pod *corev1.Pod, _ bool) { p.names = append(p.names, pod.Name) }

func TestFactoryStartsSyncsAndShutsDown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client := &fakeClient{newFakeServer("a", "b")}
		f := NewSharedInformerFactory(FactoryConfig{Client: client, Clock: clock.RealClock{}})
		ctx, cancel := context.WithCancel(t.Context())
		handler := &podNames{}
		registration := require.Value(f.Pods().AddTypedEventHandler(handler, HandlerOptions{}))(t)
		f.Start(ctx)
		f.Start(ctx)                 // starts nothing new
		late := f.Nodes().Informer() // asked for after these starts
		assert.True(t, WaitFor(ctx, registration.HasSyncedChecker()) && len(handler.names) == 2, "told of %v",
			handler.names)
		assert.Equal(t, 2, len(f.Pods().Lister().Namespace("default").List(labels.Everything())), "pods listed")
		assert.False(t, late.HasSynced(), "started before Start")
		f.Start(ctx)
		assert.True(t, WaitFor(ctx, late.HasSyncedChecker()), "not started")
		cancel()
		f.Shutdown()
		more := f.InformerFor(&corev1.ConfigMap{}, "configmaps")
		assert.True(t, f.InformerFor(&corev1.ConfigMap{}, "configmaps") == more, "a second one of the same")
		assert.True(t, f.InformerFor(&corev1.ConfigMap{}, "others") != more, "one for two resources of one type")
		f.Start(ctx)
		assert.False(t, more.started, "started after Shutdown")
	})
}

func TestRelistTellsDeletionsFirstAndNoOpUpdates(t *testing.T) {
	variants(t, func(t *testing.T, b *bench) {
		r := &recorder{}
		b.add(r, HandlerOptions{})
		var atDeletion map[string]string
		b.add(processor.ResourceEventHandlerFuncs{DeleteFunc: func(any) { atDeletion = b.stored() }}, HandlerOptions{})
		b.run()
		defer b.end()
		r.Take()

		b.server.fail(errBroken)
		b.server.cut(false) // the watch breaks, and what happens now is missed:
		b.server.delete("a")
		b.server.set("c")
		b.server.cut(true)
		b.server.fail(nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		got := r.Take()
		if b.config.FIFO == FIFOReal {
			assert.Equal(t, "-a@1?", got[0], "deletions are told first: %v", got)
			assert.NoDiff(t, map[string]string{"default/b": "2", "default/c": "4"}, atDeletion,
				"the store during OnDelete")
		}
		slices.Sort(got)
		assert.NoDiff(t, []string{"+c@4", "-a@1?", "~b@2>2"}, got)
	})
}

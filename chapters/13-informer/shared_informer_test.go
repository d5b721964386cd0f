package informer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a handler that writes down its calls: "+a@1*" for an add in the initial list, "+a@1", "~a@1>2", "-a@3",
// and "-a@1?" for a deletion that nobody saw.
type recorder struct {
	mu    sync.Mutex
	calls []string
	delay time.Duration // in bubble time
	onAny func()
}

func (r *recorder) record(format string, args ...any) {
	if r.delay > 0 {
		time.Sleep(r.delay)
	}
	r.mu.Lock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
	r.mu.Unlock()
	if r.onAny != nil {
		r.onAny()
	}
}

func name(obj any) string {
	key, _ := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	return strings.TrimPrefix(key, "default/")
}

func (r *recorder) OnAdd(obj any, isInInitialList bool) {
	initial := ""
	if isInInitialList {
		initial = "*"
	}
	r.record("+%s@%d%s", name(obj), rvOf(obj), initial)
}

func (r *recorder) OnUpdate(old, obj any) { r.record("~%s@%d>%d", name(obj), rvOf(old), rvOf(obj)) }

func (r *recorder) OnDelete(obj any) {
	if tombstone, ok := obj.(deltafifo.DeletedFinalStateUnknown); ok {
		r.record("-%s@%d?", name(obj), rvOf(tombstone.Obj))
		return
	}
	r.record("-%s@%d", name(obj), rvOf(obj))
}

// take returns the calls since the last take.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func (r *recorder) sorted() []string {
	calls := r.take()
	slices.Sort(calls)
	return calls
}

// bench is an informer over a fake server, in a bubble.
type bench struct {
	*SharedIndexInformer
	t      *testing.T
	server *fakeServer
	cancel context.CancelFunc
	ended  chan struct{}
}

func (b *bench) run() {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() {
		b.Run(ctx)
		close(b.ended)
	}()
	synctest.Wait()
}

func (b *bench) end() {
	b.cancel()
	<-b.ended
}

func (b *bench) add(h processor.ResourceEventHandler, opts HandlerOptions) processor.Registration {
	b.t.Helper()
	registration, err := b.AddEventHandlerWithOptions(h, opts)
	if err != nil {
		b.t.Fatal(err)
	}
	return registration
}

func (b *bench) stored() map[string]string {
	state := map[string]string{}
	for _, obj := range b.GetStore().List() {
		state["default/"+name(obj)] = obj.(*corev1.Pod).ResourceVersion
	}
	return state
}

func wantCalls(t *testing.T, r *recorder, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, r.take()); diff != "" {
		t.Errorf("handler calls (-want +got):\n%s", diff)
	}
}

// variants runs test in a bubble for both queues and both ways to a first list.
func variants(t *testing.T, server func() *fakeServer, test func(t *testing.T, b *bench), change ...func(*Config)) {
	for _, fifo := range []string{FIFOReal, FIFODelta} {
		for _, watchList := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/watchlist=%v", fifo, watchList), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := server()
					cfg := Config{
						Name:          "pods",
						ListerWatcher: s,
						ExampleObject: &corev1.Pod{},
						Indexers:      indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
						Clock:         clock.RealClock{}, // the bubble's
						FIFO:          fifo,
						UseWatchList:  watchList,
						Jitter:        func() float64 { return 0 },
					}
					for _, f := range change {
						f(&cfg)
					}
					b := &bench{SharedIndexInformer: NewSharedIndexInformer(cfg), t: t, server: s, ended: make(chan struct{})}
					test(t, b)
				})
			})
		}
	}
}

func twoPods() *fakeServer { return newFakeServer("a", "b") }

func TestHandlerIsToldInitialStateThenEveryChange(t *testing.T) {
	variants(t, twoPods, func(t *testing.T, b *bench) {
		r := &recorder{}
		registration := b.add(r, HandlerOptions{})
		if b.HasSynced() || registration.HasSynced() {
			t.Fatal("synced before Run")
		}
		b.run()
		defer b.end()
		if diff := cmp.Diff([]string{"+a@1*", "+b@2*"}, r.sorted()); diff != "" {
			t.Fatal(diff)
		}
		if !b.HasSynced() || !registration.HasSynced() {
			t.Error("not synced after the initial list")
		}
		b.server.set("a")
		b.server.set("c")
		b.server.delete("b")
		wantCalls(t, r, "~a@1>3", "+c@4", "-b@5")
		if diff := cmp.Diff(b.server.state(), b.stored()); diff != "" {
			t.Error(diff)
		}
		if got := b.LastSyncResourceVersion(); got != "5" {
			t.Errorf("LastSyncResourceVersion %q, want 5", got)
		}
	})
}

package informer

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
)

// view is a handler that keeps a copy of the state it is told of, and notes what cannot be.
type view struct {
	mu      sync.Mutex
	state   map[string]string
	told    int
	strange []string
	slow    time.Duration
}

var _ processor.ResourceEventHandler = (*view)(nil)

func (v *view) note(check bool, what string, obj any) {
	time.Sleep(v.slow)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told++
	if !check {
		v.strange = append(v.strange, what+" "+name(obj))
	}
}

func (v *view) known(obj any) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state["default/"+name(obj)]
}

func (v *view) set(obj any, rv string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state["default/"+name(obj)] = rv
	if rv == "" {
		delete(v.state, "default/"+name(obj))
	}
}

func (v *view) OnAdd(obj any, _ bool) {
	v.note(v.known(obj) == "", "added again", obj)
	v.set(obj, obj.(*corev1.Pod).ResourceVersion)
}

func (v *view) OnUpdate(old, obj any) {
	v.note(v.known(obj) == old.(*corev1.Pod).ResourceVersion, "updated from an unknown state", obj)
	v.note(rvOf(obj) >= rvOf(old), "updated to an older state", obj)
	v.set(obj, obj.(*corev1.Pod).ResourceVersion)
}

func (v *view) OnDelete(obj any) {
	v.note(v.known(obj) != "", "deleted although unknown", obj)
	v.set(obj, "")
}

// withoutDeadline hides the test's deadline, which is in a time that a bubble does not know.
type withoutDeadline struct{ rapid.TB }

// Whatever happens to the watch, and whenever a handler joins: when all is quiet, each handler knows what the store
// holds, which is what the server holds, and was told nothing strange on the way.
func TestEveryHandlerEndsUpKnowingTheServersState(t *testing.T) {
	for _, fifo := range []string{FIFOReal, FIFODelta} {
		t.Run(fifo, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rapid.Check(withoutDeadline{t}, func(rt *rapid.T) {
					s := newFakeServer("a", "b")
					b := &bench{SharedIndexInformer: NewSharedIndexInformer(Config{
						Name: "pods", ListerWatcher: s, ExampleObject: &corev1.Pod{}, Clock: clock.RealClock{}, FIFO: fifo,
						Indexers:     indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
						UseWatchList: rapid.Bool().Draw(rt, "watch-list"), Jitter: func() float64 { return 0 },
						ResyncPeriod: time.Minute,
					}), t: t, server: s, ended: make(chan struct{})}
					b.run()
					defer b.end()
					var views []*view
					var registrations []processor.Registration
					pods := rapid.SampledFrom([]string{"a", "b", "c", "d"})
					rt.Repeat(map[string]func(*rapid.T){
						"set":    func(rt *rapid.T) { s.set(pods.Draw(rt, "pod")) },
						"delete": func(rt *rapid.T) { s.delete(pods.Draw(rt, "pod")) },
						"cut":    func(rt *rapid.T) { s.cut(rapid.Bool().Draw(rt, "compact")) },
						"mark":   func(*rapid.T) { s.bookmark() },
						"settle": func(*rapid.T) { synctest.Wait() },
						"wait":   func(*rapid.T) { time.Sleep(20 * time.Second) },
						"join": func(rt *rapid.T) {
							v := &view{state: map[string]string{}}
							if rapid.Bool().Draw(rt, "slow") {
								v.slow = time.Second
							}
							views = append(views, v)
							registrations = append(registrations, b.add(v, HandlerOptions{}))
						},
						"leave": func(rt *rapid.T) {
							if len(views) > 0 {
								b.RemoveEventHandler(registrations[0])
								views, registrations = views[1:], registrations[1:]
							}
						},
					})
					time.Sleep(time.Hour)
					b.end() // resyncs go on for ever; what a slow handler has not been told by now changes nothing
					if diff := cmp.Diff(s.state(), b.stored()); diff != "" {
						rt.Fatalf("store (-server +store):\n%s", diff)
					}
					for i, v := range views {
						if diff := cmp.Diff(s.state(), v.state); diff != "" || len(v.strange) > 0 {
							rt.Fatalf("handler %d: %v (-server +handler):\n%s", i, v.strange, diff)
						}
						if !registrations[i].HasSynced() {
							rt.Fatalf("handler %d has not synced", i)
						}
					}
				})
			})
		})
	}
}

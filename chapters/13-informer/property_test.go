package informer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// view is a handler that keeps a copy of the state it is told of, and notes what cannot be.
type view struct {
	mu      sync.Mutex
	state   map[string]string
	strange []string // the first few
	slow    time.Duration
}

var _ processor.ResourceEventHandler = (*view)(nil)

func (v *view) note(check bool, what string, obj any) {
	time.Sleep(v.slow)
	v.mu.Lock()
	defer v.mu.Unlock()
	if !check && len(v.strange) < 5 {
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

// read returns a copy of the state, and what was strange.
func (v *view) read() (state map[string]string, strange []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.state), slices.Clone(v.strange)
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

// script is what happens to an informer, step by step:
//
//	set a, delete a      writes
//	mark                 a bookmark
//	cut, expire          all watches end; after expire they cannot be resumed: 410
//	fail, heal           from now on every request fails; from now on none does
//	join, join slow      a handler joins; one that takes a second for everything it is told
//	leave                the handler that joined first leaves
//	settle, wait         everything comes to rest; 20 s pass
//	rest                 so much time passes that nothing happens any more; the store and every handler are looked at
type script struct {
	t             *testing.T
	server        *fakeServer
	bench         *bench
	views         []*view
	registrations []processor.Registration
}

// play plays steps in a bubble, and returns what was wrong, "" if nothing was. Chance must have spoken before: rapid
// knows nothing of bubbles, and would stop after a day, which passes here in no time.
func play(t *testing.T, fifo string, watchList bool, steps []string) (wrong string) {
	bubble.Test(t, func(t *testing.T) {
		s := newFakeServer("a", "b")
		p := &script{t: t, server: s, bench: &bench{SharedIndexInformer: NewSharedIndexInformer(Config{
			Name: "pods", ListerWatcher: s, ExampleObject: &corev1.Pod{}, Clock: clock.RealClock{}, FIFO: fifo,
			Indexers:     indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
			UseWatchList: watchList, Jitter: func() float64 { return 0 }, ResyncPeriod: time.Minute,
		}), t: t, server: s, ended: make(chan struct{})}}
		p.bench.run()
		defer p.bench.end()
		for i, step := range append(steps, "rest") {
			if wrong = p.step(step); wrong != "" {
				wrong = fmt.Sprintf("step %d, %s: %s", i, step, wrong)
				return
			}
		}
	})
	return wrong
}

func (p *script) step(step string) (wrong string) {
	verb, what, _ := strings.Cut(step, " ")
	switch verb {
	case "set":
		p.server.set(what)
	case "delete":
		p.server.delete(what)
	case "mark":
		p.server.bookmark(0)
	case "cut", "expire":
		p.server.cut(verb == "expire")
	case "fail":
		p.server.fail(errBroken)
	case "heal":
		p.server.fail(nil)
	case "join":
		p.join(what == "slow")
	case "leave":
		if len(p.views) > 0 {
			p.bench.RemoveEventHandler(p.registrations[0])
			p.views, p.registrations = p.views[1:], p.registrations[1:]
		}
	case "settle":
		synctest.Wait()
	case "wait":
		time.Sleep(20 * time.Second)
	case "rest":
		p.server.fail(nil)
		time.Sleep(10*time.Minute + 30*time.Second) // not on the minute, when everything is resynced
		synctest.Wait()
		return p.look()
	}
	return ""
}

func (p *script) join(slow bool) {
	v := &view{state: map[string]string{}}
	if slow {
		v.slow = time.Second
	}
	p.views = append(p.views, v)
	p.registrations = append(p.registrations, p.bench.add(v, HandlerOptions{}))
}

// look expects that the store and every handler know what the server holds, and that no handler was told anything
// strange.
func (p *script) look() (wrong string) {
	if diff := cmp.Diff(p.server.state(), p.bench.stored()); diff != "" {
		return "store (-server +store):\n" + diff
	}
	for i, v := range p.views {
		state, strange := v.read()
		if diff := cmp.Diff(p.server.state(), state); diff != "" || len(strange) > 0 {
			return fmt.Sprintf("handler %d: %v (-server +handler):\n%s", i, strange, diff)
		}
		if !p.registrations[i].HasSynced() {
			return fmt.Sprintf("handler %d has not synced", i)
		}
	}
	return ""
}

// Whatever happens to the watch, and whenever a handler joins: when all is quiet, each handler knows what the store
// holds, which is what the server holds, and was told nothing strange on the way.
func TestEveryHandlerEndsUpKnowingTheServersState(t *testing.T) {
	steps := rapid.SliceOfN(rapid.SampledFrom([]string{
		"set a", "set b", "set c", "set d", "delete a", "delete b", "delete c", "delete d", "mark", "cut", "expire",
		"expire",
		"fail", "heal", "join", "join slow", "leave", "settle", "wait", "rest",
	}), 12, 80)
	for _, fifo := range []string{FIFOReal, FIFODelta} {
		t.Run(fifo, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				require.Equal(rt, play(t, fifo, rapid.Bool().Draw(rt, "watch-list"), steps.Draw(rt, "steps")), "")
			})
		})
	}
}

package cacher

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// stuck begins a watch that no client reads, and fills it: 10 events in result, one in process, 10 in input.
func (f *fixture) stuck(rv string) watch.Interface {
	w := f.watch("", everything(rv))
	for range 21 {
		f.update("default/a")
		synctest.Wait()
	}
	return w
}

// reading keeps reading w and says when each event came, until the watch ends.
func (f *fixture) reading(w watch.Interface) *arrivals {
	a := &arrivals{ended: make(chan struct{})}
	bubble.Go(f.t, "test.client", func(context.Context) { a.read(w) })
	return a
}

type arrivals struct {
	ended chan struct{}

	mu    sync.Mutex
	times []time.Time
}

func (a *arrivals) read(w watch.Interface) {
	defer close(a.ended)
	for range w.ResultChan() {
		a.mu.Lock()
		a.times = append(a.times, time.Now())
		a.mu.Unlock()
	}
}

func (a *arrivals) last() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times[len(a.times)-1]
}

func TestASlowWatcherCostsTheOthersNothingAndIsClosedAfterTheBudget(t *testing.T) {
	run(t, nil, func(f *fixture) {
		time.Sleep(time.Minute)
		rv := f.create("default/a")
		slow := f.stuck(rv)
		fast := f.reading(f.watch("", everything(rv))) // registered after the slow one, and so offered later
		synctest.Wait()

		start := time.Now()
		f.update("default/a")
		synctest.Wait()
		assert.Equal(t, 0, fast.last().Sub(start), "the fast watcher waited for the slow one")
		// The first bookmark tick passed long ago: the budget is full.
		time.Sleep(maxBudget - time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 0, f.Snapshot().NTerminated, "closed before the budget was used up")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 1, f.Snapshot().NTerminated, "not closed, though the budget is used up")
		events := seen(slow)
		f.is("the slow one's end", events[len(events)-1:], "closed")
		n := len(events) - 1
		assert.True(t, n >= 10 && n <= 11, "the slow one saw %d events: what was in result, and perhaps one more", n)
		assert.True(t, f.Snapshot().Budget <= time.Duration(5)*time.Millisecond,
			"the budget is %v after the wait, want next to nothing: what was spent is gone", f.Snapshot().Budget)
	})
}

func TestASlowWatcherThatMakesRoomInTimeIsKeptAndTheRestOfTheBudgetReturned(t *testing.T) {
	run(t, nil, func(f *fixture) {
		time.Sleep(time.Minute)
		slow := f.stuck(f.create("default/a"))
		f.update("default/a")
		time.Sleep(40 * time.Millisecond)
		<-slow.ResultChan()
		synctest.Wait()
		s := f.Snapshot()
		assert.True(t, s.NTerminated == 0 && !s.Dispatching, "%+v", s)
		assert.True(t, s.Budget >= 60*time.Millisecond && s.Budget <= 63*time.Millisecond,
			"budget %v, want what was not used", s.Budget)
	})
}

func TestDispatchingSequentiallyMakesTheNextWatcherWait(t *testing.T) {
	sequential := func(c *Config) { c.Dispatch = Sequential }
	run(t, sequential, func(f *fixture) {
		time.Sleep(time.Minute)
		rv := f.create("default/a")
		f.stuck(rv)
		fast := f.reading(f.watch("", everything(rv)))
		synctest.Wait()
		start := time.Now()
		f.update("default/a")
		time.Sleep(time.Second)
		assert.Equal(t, maxBudget, fast.last().Sub(start), "the fast watcher waited")
	})
}

func TestAnEventGoesOnlyToTheWatchersOfItsScope(t *testing.T) {
	run(t, nil, func(f *fixture) {
		rv := f.create("default/z")
		watches := map[string]watch.Interface{
			"all":                f.watch("", everything(rv)),
			"namespace":          f.watch("/default", everything(rv)),
			"other":              f.watch("/kube-system", everything(rv)),
			"name":               f.watch("", selecting(rv, "", "metadata.name=a")),
			"other name":         f.watch("", selecting(rv, "", "metadata.name=b")),
			"selected namespace": f.watch("", selecting(rv, "", "metadata.namespace=default")),
			"object":             f.watch("/default/a", selecting(rv, "", "")),
		}
		single := everything(rv)
		single.Recursive = false
		watches["single"] = f.watch("/default/a", single)
		f.create("default/a")
		synctest.Wait()
		f.is("recipients", f.recipients("default/a"), "6") // all but the other ones
		for name, w := range watches {
			want := "ADDED default/a 3"
			if strings.Contains(name, "other") || name == "object" {
				want = ""
			}
			f.is(name, seen(w), want)
			w.Stop()
		}
	})
}

// recipients returns how many watchers the last event about the object was handed to.
func (f *fixture) recipients(id string) []string {
	n := 0
	for _, r := range probetest.Records(f.log, probe.DispatchStarted) {
		if r.Key == prefix+"/"+id {
			n = r.Args[0]
		}
	}
	return []string{fmt.Sprint(n)}
}

func TestAMoveReachesTheWatchersOfBothValuesAndNoOthers(t *testing.T) {
	run(t, withTrigger, func(f *fixture) {
		rv := f.create("default/a", "node=n1")
		nodes := map[string]watch.Interface{}
		for i := range 100 {
			node := fmt.Sprintf("n%d", i)
			nodes[node] = f.watch("", selecting(rv, "", "spec.nodeName="+node))
		}
		all := f.watch("", everything(rv))
		f.update("default/a", "node=n2")
		synctest.Wait()
		f.is("recipients", f.recipients("default/a"), "3")
		f.is("old node", seen(nodes["n1"]), "DELETED default/a 3")
		f.is("new node", seen(nodes["n2"]), "ADDED default/a 3")
		f.is("everything", seen(all), "MODIFIED default/a 3")
		f.remove("default/a")
		synctest.Wait()
		f.is("recipients of the deletion", f.recipients("default/a"), "2")
		f.is("new node", seen(nodes["n2"]), "DELETED default/a 4")
		for _, w := range nodes {
			w.Stop()
		}
		all.Stop()
		synctest.Wait()
		f.mu.RLock()
		defer f.mu.RUnlock()
		assert.True(t, len(f.watchers.valueWatchers) == 0 && len(f.watchers.allWatchers) == 0,
			"watchers are left in the books")
	})
}

// A Stop is final: what comes later in the same dispatch does not take it back. The watcher has the bookmark that ends
// its initial events in input, and would be drained if only the dispatcher gave it up.
func TestAStopDuringADispatchIsFinal(t *testing.T) {
	for name, stop := range map[string]func(*fixture, watch.Interface){
		"its client leaves":           func(_ *fixture, w watch.Interface) { w.Stop() },
		"all watchers are terminated": func(f *fixture, _ watch.Interface) { f.terminateAllWatchers() },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(f *fixture) {
				time.Sleep(time.Minute)
				for i := range 20 {
					f.create(fmt.Sprint("default/p", i))
				}
				synctest.Wait() // all are dispatched: a creation in input would fill it before the bookmark comes
				slow := f.watch("", watchList(everything("")))
				time.Sleep(3 * time.Second) // the dispatcher's bookmark is in input
				for range 15 {
					if !f.Snapshot().Dispatching {
						f.update("default/p0")
						synctest.Wait()
					}
				}
				require.True(t, f.Snapshot().Dispatching, "no dispatch waits: %+v", f.Snapshot())
				time.Sleep(time.Millisecond)
				stop(f, slow)
				time.Sleep(maxBudget)
				synctest.Wait()
				s := f.Snapshot()
				require.True(t, !s.Dispatching && s.NTerminated == 1, "%+v", s)
				sent := seen(slow)
				assert.True(t, len(sent) < 20 && sent[len(sent)-1] == "closed", "%d: got %q", len(sent), sent)
			})
		})
	}
}

// A send on a closed input panics; this is where it would.
func TestStoppingAndDispatchingAtTheSameTime(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run(t, withTrigger, func(f *fixture) {
				f.create("default/a", "node=n1")
				var clients sync.WaitGroup
				for i := range 8 {
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					clients.Go(func() { f.comeAndGo(random) })
				}
				for i := range 150 {
					f.update("default/a", fmt.Sprint("node=n", i%3))
					if i%40 == 39 {
						f.terminateAllWatchers()
					}
					time.Sleep(time.Duration(i%3) * 10 * time.Millisecond)
				}
				clients.Wait()
				time.Sleep(time.Second)
				synctest.Wait()
				assert.Equal(t, 0, len(f.Snapshot().Watchers), "watchers that are left")
			})
		})
	}
}

// comeAndGo begins watches, reads a little, and stops them at any moment.
func (f *fixture) comeAndGo(random *rand.Rand) {
	for range 30 {
		opts := everything("0")
		if random.IntN(2) == 0 {
			opts = selecting("0", "", fmt.Sprint("spec.nodeName=n", random.IntN(3)))
		}
		if random.IntN(2) == 0 {
			opts = watchList(opts)
		}
		w, err := f.store.Watch(f.ctx, prefix, opts)
		if err != nil {
			f.t.Error(err)
			return
		}
		for range random.IntN(10) {
			select {
			case <-w.ResultChan():
			case <-time.After(time.Duration(random.IntN(50)) * time.Millisecond):
			}
		}
		bubble.Go(f.t, "test.stop", func(context.Context) { w.Stop() })
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
	}
}

// encoder is a form in which watchers want objects, and counts.
type encoder struct {
	id runtime.Identifier
	n  atomic.Int64
}

func (e *encoder) encode(obj runtime.Object, w io.Writer) error {
	e.n.Add(1)
	if _, ok := obj.(*corev1.Pod); !ok {
		return fmt.Errorf("asked to encode a %T", obj)
	}
	return json.NewEncoder(w).Encode(obj)
}

// encodeAll has one event of each watcher encoded, all at the same time, and returns the different outcomes.
func encodeAll(t *testing.T, e *encoder, watchers []watch.Interface) map[string]int {
	t.Helper()
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		outcomes = map[string]int{}
	)
	for _, w := range watchers {
		event := <-w.ResultChan()
		cacheable, ok := event.Object.(runtime.CacheableObject)
		require.True(t, ok, "%s: a plain %T", event.Type, event.Object)
		wg.Go(func() {
			var out bytes.Buffer
			assert.NoError(t, cacheable.CacheEncode(e.id, e.encode, &out))
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprint(event.Type, " ", out.String())]++
		})
	}
	wg.Wait()
	return outcomes
}

func TestAnEventIsEncodedOnceForAllWatchersThatWantTheSameForm(t *testing.T) {
	type scopes map[runtime.Identifier]string
	for n, scopes := range map[int]scopes{ // wrapping copies nothing, so one watcher is no case of its own
		1: {"json": ""}, 20: {"json": "", "table": "/default"},
	} {
		run(t, nil, func(f *fixture) {
			watches := map[runtime.Identifier][]watch.Interface{}
			for form, scope := range scopes {
				for range n {
					watches[form] = append(watches[form], f.watch(scope, everything("1")))
				}
			}
			for i, write := range []func() string{
				func() string { return f.create("default/a", "app=1") },
				func() string { return f.update("default/a", "app=2") },
				func() string { return f.remove("default/a") },
			} {
				rv := write()
				synctest.Wait()
				for id, watchers := range watches {
					e := &encoder{id: id}
					outcomes := encodeAll(t, e, watchers)
					assert.True(t, e.n.Load() == 1 && len(outcomes) == 1,
						"step %d, %s: encoded %d times, with %d outcomes", i, id, e.n.Load(), len(outcomes))
					for text, count := range outcomes {
						assert.True(t, count == n && strings.Contains(text, `"resourceVersion":"`+rv+`"`),
							"step %d, %s: %d of %d saw %s, want version %s", i, id, count, n, text, rv)
					}
				}
			}
		})
	}
}

func TestTheBudgetBeginsAtNothingAndAccruesFiveMillisecondsATenthUpToAHundred(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := newTimeBudget(clock.RealClock{})
		is := func(what string, got, want time.Duration) {
			t.Helper()
			assert.Equal(t, want, got, what)
		}
		is("at first", b.takeAvailable(), 0)
		time.Sleep(100 * time.Millisecond)
		is("after 100 ms", b.available(), 5*time.Millisecond)
		is("taken", b.takeAvailable(), 5*time.Millisecond)
		is("taken again", b.takeAvailable(), 0)
		time.Sleep(time.Second)
		is("after a second", b.takeAvailable(), 50*time.Millisecond)
		time.Sleep(100 * 365 * 24 * time.Hour)
		is("after a century", b.takeAvailable(), 100*time.Millisecond)
		b.returnUnused(30 * time.Millisecond)
		is("returned", b.available(), 30*time.Millisecond)
		b.returnUnused(-time.Hour)
		is("overdrawn", b.available(), 30*time.Millisecond)
		b.returnUnused(time.Hour)
		is("returned too much", b.takeAvailable(), 100*time.Millisecond)
	})
}

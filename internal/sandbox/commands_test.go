package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/bubble"
	"listwatch/internal/probe"
)

const informerAgent = userAgent + "-informer"

// knobs returns how everything stands, without what only counts.
func (w *world) knobs() string {
	state := w.Knobs()
	state.Traffic.Written, state.UnderWay = 0, nil
	return fmt.Sprintf("%+v", state)
}

// podNames returns what is stored, also when nothing runs any more.
func (w *world) podNames(t *testing.T) (names []string) {
	t.Helper()
	list, err := w.store.List(t.Context(), "/registry/pods/", kubernetes.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range list.Kvs {
		names = append(names, string(kv.Key))
	}
	return names
}

// In a held world a command is taken at once. Before it had an owner, it stood at the gate that it was sent to act on, and
// acted when the world was released, long after its request had gone.
func TestInAHeldWorldEveryCommandIsTakenAtOnce(t *testing.T) {
	inWorld(t, func(s *Config, _ *pipeline.ClientConfig) {
		s.RestartEtcd = func(context.Context) error { return nil }
	}, func(t *testing.T, w *world) {
		w.createAll(t, letters(3))
		w.log.Gate().Hold()
		for _, knob := range []Knob{
			{"ring.capacity", "pods", "8"}, {"handler.add", "x", ""}, {"handler.delay", "x", "1s"}, {"line.cut", informerAgent, "true"},
			{"line.stall", informerAgent, "true"}, {"line.drop", "listwatch-scheduler", ""}, {"traffic.rate", "", "10"}, {"etcd.compact", "", ""},
			{"handler.remove", "x", ""},
		} {
			began := time.Now()
			if err := w.Turn(t.Context(), knob); err != nil {
				t.Errorf("%v: %v", knob, err)
			}
			if took := time.Since(began); took > heldPeriod {
				t.Errorf("%v took %v", knob, took)
			}
		}
		if state := w.connections.state(informerAgent); !state.Cut || !state.Stalled {
			t.Errorf("cut and stalled in a held world, it stands as %+v", state)
		}
		if ring := w.Knobs().Rings[3]; ring.Capacity != 8 {
			t.Errorf("the ring: got %+v", ring)
		}
		began := time.Now()
		if err := w.Reset(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > heldPeriod {
			t.Errorf("the reset took %v", took)
		}
		if state := w.Knobs(); state.Traffic.Rate != 0 || len(state.Handlers) != 1 || len(state.UnderWay) != 1 {
			t.Errorf("after the reset: %+v", state)
		}
		if err := w.Reset(t.Context()); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the reset is under way") {
			t.Errorf("a second reset: %v", err)
		}
		w.log.Gate().Release()
		time.Sleep(time.Minute)
		if names := w.podNames(t); len(names) != 0 {
			t.Errorf("after the release there are %v", names)
		}
	})
}

// The request only waits. When it goes, etcd is not left between its stop and its start.
func TestARestartOfEtcdIsDoneToItsEnd(t *testing.T) {
	var stopped, started atomic.Int32
	inWorld(t, func(s *Config, _ *pipeline.ClientConfig) {
		s.RestartEtcd = func(ctx context.Context) error {
			stopped.Add(1)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Second):
			}
			started.Add(1)
			return nil
		}
	}, func(t *testing.T, w *world) {
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer leave()
		if err := w.Turn(ctx, Knob{Name: "etcd.restart"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one who left: %v", err)
		}
		for _, name := range []string{"etcd.restart", "etcd.compact"} {
			err := w.Turn(t.Context(), Knob{Name: name})
			if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "etcd.restart is under way") {
				t.Errorf("%s meanwhile: %v", name, err)
			}
		}
		time.Sleep(time.Minute)
		if stopped.Load() != 1 || started.Load() != 1 {
			t.Errorf("stopped %d times, started %d times, want once each", stopped.Load(), started.Load())
		}
		if err := w.Turn(t.Context(), Knob{Name: "etcd.restart"}); err != nil || started.Load() != 2 {
			t.Errorf("afterwards: %v, started %d times", err, started.Load())
		}
	})
}

// opening is a transport whose answer to a watch takes as long as the test wants.
type opening struct {
	under http.RoundTripper
	asked chan struct{} // sent by RoundTrip, for each watch
	goOn  chan struct{} // closed by the test
}

func (o *opening) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "true" {
		o.asked <- struct{}{}
		<-o.goOn
	}
	return o.under.RoundTrip(request)
}

func TestACutCatchesAWatchThatIsBeingOpened(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		transport := &opening{asked: make(chan struct{}), goOn: make(chan struct{}), under: answering{}}
		connections := NewConnections(&http.Client{Transport: transport}, nil)
		var got error
		done := make(chan struct{})
		go func() {
			defer close(done)
			request, _ := http.NewRequest(http.MethodGet, "http://pipe/api/v1/pods?watch=true", nil)
			request.Header.Set("User-Agent", "a")
			response, err := connections.Client().Do(request)
			if err == nil {
				response.Body.Close()
			}
			got = err
		}()
		<-transport.asked
		if !connections.knows("a") || len(connections.list()) != 0 {
			t.Errorf("while it opens: %+v", connections.list())
		}
		closeAll(connections.cut("a", true))
		close(transport.goOn)
		<-done
		if !errors.Is(got, errCut) {
			t.Errorf("got %v, want %v", got, errCut)
		}
		if list := connections.list(); len(list) != 1 || !list[0].Cut || list[0].Streams != 0 {
			t.Errorf("afterwards: %+v", list)
		}
		connections.forget("a")
		if connections.knows("a") || len(connections.list()) != 0 {
			t.Error("it is not forgotten")
		}
	})
}

// answering answers every request with a stream that has no end.
type answering struct{}

func (answering) RoundTrip(request *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	context.AfterFunc(request.Context(), func() { writer.CloseWithError(request.Context().Err()) })
	return &http.Response{StatusCode: http.StatusOK, Body: reader, Request: request}, nil
}

func TestWhatDoesNotExistIsNotKept(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		before := w.knobs()
		for _, knob := range []Knob{
			{"line.cut", "nobody", "true"}, {"line.stall", "nobody", "true"}, {"line.drop", "nobody", ""}, {"ring.capacity", "cars", "10"},
			{"handler.remove", "nobody", ""}, {"no.such", "", ""},
		} {
			if err := w.Turn(t.Context(), knob); !apierrors.IsNotFound(err) {
				t.Errorf("%v: got %v, want not found", knob, err)
			}
		}
		long := strings.Repeat("x", 300)
		for _, knob := range []Knob{{long, "", ""}, {"line.cut", long, "true"}, {"handler.delay", observer, long}, {"switch", "fifo", "delta"}} {
			if err := w.Turn(t.Context(), knob); !apierrors.IsBadRequest(err) || len(err.Error()) > 200 {
				t.Errorf("%.20v: got %v, want a short bad request", knob, err)
			}
		}
		for _, options := range []WatcherOptions{{Resource: "cars"}, {Resource: ""}, {Resource: "a/b"}, {Resource: long}} {
			if _, err := w.AddWatcher(t.Context(), options); !apierrors.IsNotFound(err) {
				t.Errorf("watch %.20q: got %v, want not found", options.Resource, err)
			}
		}
		for _, namespace := range []string{"..", "a/b", "%", long} {
			if _, err := w.AddWatcher(t.Context(), WatcherOptions{Resource: "pods", Namespace: namespace}); !apierrors.IsBadRequest(err) {
				t.Errorf("watch in %.20q: got %v, want a bad request", namespace, err)
			}
		}
		if _, err := w.AddWatcher(t.Context(), WatcherOptions{Resource: "pods", ResourceVersion: "new"}); !apierrors.IsBadRequest(err) {
			t.Errorf("watch from nowhere: got %v, want a bad request", err)
		}
		if after := w.knobs(); after != before || len(w.Watchers()) != 0 {
			t.Errorf("kept:\n%s\nbefore\n%s", after, before)
		}
	})
}

func TestWhatAWatcherLeavesIsForgotten(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		before := w.knobs()
		for range 3 {
			id := w.addWatcher(t, WatcherOptions{Resource: "pods"})
			agent := w.Watchers()[0].UserAgent
			w.turn(t, "line.stall", agent, "true")
			if err := w.RemoveWatcher(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if w.connections.knows(agent) {
				t.Errorf("%s is still known", agent)
			}
		}
		if after := w.knobs(); after != before {
			t.Errorf("left:\n%s\nbefore\n%s", after, before)
		}
	})
}

func TestAResetIsNotDisturbedByOtherDeletions(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.createAll(t, letters(40))
		w.log.Gate().Close(probe.Selector{Station: probe.Etcd, Resource: "pods"})
		resetting := make(chan error, 1)
		go func() { resetting <- w.Reset(t.Context()) }()
		synctest.Wait() // the first deletions stand behind their commit
		for _, name := range letters(40) {
			_ = w.config.Pipeline.Server.Storage("pods").Delete(t.Context(), "/registry/pods/default/"+name, &corev1.Pod{}, nil, nil, nil)
			w.log.Gate().Release()
		}
		if err := <-resetting; err != nil {
			t.Error(err)
		}
	})
}

// The versions of a state that comes in key order are no place to go on from.
func TestAWatcherDoesNotGoOnFromInsideAState(t *testing.T) {
	pod := func(name, rv string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: rv}}
	}
	event := func(typ watch.EventType, obj runtime.Object) watch.Event { return watch.Event{Type: typ, Object: obj} }
	for name, test := range map[string]struct {
		from   string
		events []watch.Event
		want   string
	}{
		"broken inside the state":     {"", []watch.Event{event(watch.Added, pod("a", "9"))}, ""},
		"inside the state of version": {"0", []watch.Event{event(watch.Added, pod("a", "9"))}, "0"},
		"the state is over":           {"", []watch.Event{event(watch.Added, pod("a", "9")), event(watch.Bookmark, pod("", "10")), event(watch.Added, pod("b", "11"))}, "11"},
		"a change shows it":           {"", []watch.Event{event(watch.Added, pod("a", "9")), event(watch.Modified, pod("b", "12"))}, "12"},
		"from a version on":           {"5", []watch.Event{event(watch.Added, pod("a", "9"))}, "9"},
		"expired":                     {"5", []watch.Event{event(watch.Error, &metav1.Status{})}, ""},
	} {
		each := &watcher{resourceVersion: test.from}
		each.begin()
		for _, event := range test.events {
			each.remember(event)
		}
		if each.resourceVersion != test.want {
			t.Errorf("%s: goes on from %q, want %q", name, each.resourceVersion, test.want)
		}
	}
}

// fakes are what the small etcd has not: a restart, nodes and modes. Each takes time, gives up if its context ends, and says in
// the log when it is half done.
type fakes struct {
	probe *probe.Probe

	mu       sync.Mutex // guards the fields below; innermost
	restarts int
	switches int
	down     bool
}

func (f *fakes) halfDone(ctx context.Context, what string) error {
	for range 2 {
		f.probe.Text(probe.KnobTurned, what, "", 0)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return nil
}

func (f *fakes) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakes) restart(ctx context.Context) error {
	err := f.halfDone(ctx, "etcd is down")
	if err == nil {
		f.set(func() { f.restarts++ })
	}
	return err
}

var _ Cluster = (*fakes)(nil)

func (f *fakes) Names() []string { return []string{"n1"} }

func (f *fakes) Running(string) (up bool) {
	f.set(func() { up = !f.down })
	return up
}

func (f *fakes) Run(ctx context.Context, _ string, up bool) error {
	if f.Running("n1") == up {
		return nil
	}
	err := f.halfDone(ctx, "the node is between up and down")
	if err == nil {
		f.set(func() { f.down = !up })
	}
	return err
}

var _ Modes = (*fakes)(nil)

func (f *fakes) Switch(string, string) (again func() error, err error) {
	return func() error {
		err := f.halfDone(context.Background(), "between two modes")
		f.set(func() { f.switches++ })
		return err
	}, nil
}

func (f *fakes) Restore() (again func() error, err error) { return nil, nil }

// commandsUnderWay asks the owner how many commands it has begun that are not over.
func (w *world) commandsUnderWay(t *testing.T) (n int) {
	t.Helper()
	err := w.do(t.Context(), &command{what: "a look", begin: func(context.Context) (func(context.Context) error, error) {
		n = w.running
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestACommandWhoseRequestGoesIsDone lets the request of each command go at every record that is written until the command
// has ended, in a world that runs and in one that is held and goes on hop by hop. Then the world runs, and the machine is as it
// was asked to be.
func TestACommandWhoseRequestGoesIsDone(t *testing.T) {
	type asked struct {
		prepare func(t *testing.T, w *world)
		do      func(ctx context.Context, w *world) error // nil: turn knob
		knob    Knob
		done    func(t *testing.T, w *world, f *fakes) bool
	}
	commands := map[string]asked{
		"reset": {
			prepare: func(t *testing.T, w *world) {
				w.createAll(t, letters(1))
				w.turn(t, "handler.add", "x", "")
				w.turn(t, "etcd.node", "n1", "false")
			},
			do: func(ctx context.Context, w *world) error { return w.Reset(ctx) },
			done: func(t *testing.T, w *world, f *fakes) bool {
				return len(w.podNames(t)) == 0 && len(w.handlers.list()) == 1 && f.Running("n1")
			},
		},
		"watcher": {
			do: func(ctx context.Context, w *world) error {
				_, err := w.AddWatcher(ctx, WatcherOptions{Resource: "pods"})
				return err
			},
			done: func(_ *testing.T, w *world, _ *fakes) bool {
				return len(w.Watchers()) == 1 && w.Watchers()[0].Error == ""
			},
		},
		"end of a watcher": {
			prepare: func(t *testing.T, w *world) { w.addWatcher(t, WatcherOptions{Resource: "pods"}) },
			do:      func(ctx context.Context, w *world) error { return w.RemoveWatcher(ctx, w.Watchers()[0].ID) },
			done:    func(_ *testing.T, w *world, _ *fakes) bool { return len(w.Watchers()) == 0 },
		},
		"handler.add": {
			prepare: func(t *testing.T, w *world) { w.createAll(t, letters(2)) },
			knob:    Knob{"handler.add", "x", ""},
			done:    func(_ *testing.T, w *world, _ *fakes) bool { return len(w.handlers.seen("x")) >= 2 },
		},
		"handler.remove": {
			prepare: func(t *testing.T, w *world) { w.turn(t, "handler.add", "x", "") },
			knob:    Knob{"handler.remove", "x", ""},
			done: func(t *testing.T, w *world, _ *fakes) bool {
				return w.handlers.find("x") == nil && len(w.since(t, 0, is(probe.ListenerRemoved, "x"))) == 1
			},
		},
		"handler.delay": {
			knob: Knob{"handler.delay", observer, "1s"},
			done: func(_ *testing.T, w *world, _ *fakes) bool {
				return w.handlers.find(observer).currentDelay() == time.Second
			},
		},
		"line.drop": {
			knob: Knob{"line.drop", informerAgent, ""},
			done: func(t *testing.T, w *world, _ *fakes) bool {
				ends := w.since(t, 0, is(probe.ReflectorWatchEnded, "informer"))
				return len(ends) == 1 && w.connections.streams(informerAgent) == 1
			},
		},
		"line.cut": {
			knob: Knob{"line.cut", informerAgent, "true"},
			done: func(_ *testing.T, w *world, _ *fakes) bool {
				return w.connections.state(informerAgent).Cut && w.connections.streams(informerAgent) == 0
			},
		},
		"line.stall": {
			knob: Knob{"line.stall", informerAgent, "true"},
			done: func(_ *testing.T, w *world, _ *fakes) bool { return w.connections.state(informerAgent).Stalled },
		},
		"ring.capacity": {
			knob: Knob{"ring.capacity", "pods", "8"},
			done: func(_ *testing.T, w *world, _ *fakes) bool {
				return slices.Contains(w.Knobs().Rings, RingInfo{Resource: "pods", Capacity: 8, Fixed: 8})
			},
		},
		"etcd.compact": {
			knob: Knob{Name: "etcd.compact"},
			done: func(t *testing.T, w *world, _ *fakes) bool {
				_, err := w.store.List(t.Context(), "/registry/pods/", kubernetes.ListOptions{Revision: 1})
				return errors.Is(err, rpctypes.ErrCompacted)
			},
		},
		"etcd.restart": {
			knob: Knob{Name: "etcd.restart"},
			done: func(_ *testing.T, _ *world, f *fakes) bool { return f.restarts == 1 },
		},
		"etcd.node": {
			knob: Knob{"etcd.node", "n1", "false"},
			done: func(_ *testing.T, _ *world, f *fakes) bool { return !f.Running("n1") },
		},
		"traffic.rate": {
			knob: Knob{"traffic.rate", "", "10"},
			done: func(_ *testing.T, w *world, _ *fakes) bool {
				info := w.traffic.Info()
				return info.Rate == 10 && info.Written > 0 && info.Error == ""
			},
		},
		"watchers.remove": {
			prepare: func(t *testing.T, w *world) {
				w.addWatcher(t, WatcherOptions{Resource: "pods"})
				w.addWatcher(t, WatcherOptions{Resource: "events"})
			},
			knob: Knob{Name: "watchers.remove"},
			done: func(_ *testing.T, w *world, _ *fakes) bool { return len(w.Watchers()) == 0 },
		},
		"switch": {
			knob: Knob{"switch", "fifo", "delta"},
			done: func(_ *testing.T, _ *world, f *fakes) bool { return f.switches == 1 },
		},
	}
	for name := range KnobNames {
		if commands[name].knob.Name != name {
			t.Errorf("no request for %s goes", name)
		}
	}
	const most = 500 // records: each of these commands writes fewer until it has ended
	for name, command := range commands {
		if command.do == nil {
			command.do = func(ctx context.Context, w *world) error { return w.Turn(ctx, command.knob) }
		}
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/held=%t", name, held), func(t *testing.T) {
				ended := false
				for at := int64(1); !ended; at++ {
					if at > most {
						t.Fatalf("it has not ended at record %d", at)
					}
					f := &fakes{}
					inWorld(t, func(s *Config, _ *pipeline.ClientConfig) {
						f.probe = s.Probe
						s.RestartEtcd, s.Cluster, s.Modes = f.restart, f, f
						s.Gate = nil // the request waits for the end, also in a held world
					}, func(t *testing.T, w *world) {
						if command.prepare != nil {
							command.prepare(t, w)
						}
						synctest.Wait()
						if held {
							w.log.Gate().Hold()
						}
						ctx, leave := context.WithCancel(t.Context())
						defer leave()
						w.records.call(at, leave)
						answered := make(chan error, 1)
						go func() { answered <- command.do(ctx, w) }()
						err := w.goOnUntil(t, answered)
						if ended = ctx.Err() == nil; err != nil && (ended || !errors.Is(err, context.Canceled)) {
							t.Errorf("gone at record %d: %v, ended: %t", at, err, ended)
						}
						w.records.call(0, nil)
						w.log.Gate().Release()
						time.Sleep(10 * time.Second)
						synctest.Wait()
						if !command.done(t, w, f) || w.commandsUnderWay(t) > 0 || len(w.Knobs().UnderWay) > 0 {
							t.Errorf("gone at record %d, it is not done: %+v, pods %v", at, w.Knobs(), w.podNames(t))
						}
					})
					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

// goOnUntil lets a held world go on hop by hop, and time pass when nothing is left to go on, until the answer is there.
func (w *world) goOnUntil(t *testing.T, answered <-chan error) error {
	t.Helper()
	for range 10_000 {
		synctest.Wait()
		select {
		case err := <-answered:
			return err
		default:
		}
		if w.log.Gate().Step(probe.Hop{}) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	t.Fatalf("no answer: %+v", w.Knobs())
	return nil
}

// TestATellingIsUndoneHoweverItEnds tells a story that turns everything, and ends it in every way, at chance moments.
func TestATellingIsUndoneHoweverItEnds(t *testing.T) {
	ways := map[string]func(w *world, leave context.CancelFunc){
		"its request goes": func(_ *world, leave context.CancelFunc) { leave() },
		"a reset":          func(w *world, _ context.CancelFunc) { _ = w.Reset(context.Background()) },
		"the session ends": func(w *world, _ context.CancelFunc) { w.stop() },
	}
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(12) {
				after := time.Duration(rand.New(rand.NewPCG(seed, 11)).Int64N(int64(3 * time.Second)))
				inWorld(t, nil, func(t *testing.T, w *world) {
					before := w.knobs()
					ctx, leave := context.WithCancel(t.Context())
					told := make(chan error, 1)
					go func() { told <- w.Tell(ctx, "everything", w.everything) }()
					time.Sleep(after)
					end(w, leave)
					<-told
					time.Sleep(time.Minute)
					synctest.Wait()
					if names := w.podNames(t); len(names) > 0 {
						t.Errorf("after %v there are %v", after, names)
					}
					if name == "the session ends" {
						return // nothing stands any more
					}
					if now := w.knobs(); now != before {
						t.Errorf("after %v:\n%s\nbefore\n%s", after, now, before)
					}
				})
			}
		})
	}
}

// everything is a story that turns what can be turned, opens watchers and makes pods.
func (w *world) everything(s Telling) error {
	client := w.pipeline.Client.NewClient("story-everything", nil, nil)
	for n := range 20 {
		pod := podNamed(fmt.Sprint("e", n), corev1.RestartPolicyAlways)
		pod.Labels[StoryLabel], pod.Spec.NodeName = "everything", "nowhere"
		err := errors.Join(
			client.Post().Namespace("default").Resource("pods").Body(pod).Do(s.Writing).Error(),
			s.Turn(Knob{"ring.capacity", "pods", fmt.Sprint(n + 4)}),
		)
		for _, knob := range []Knob{
			{"handler.add", fmt.Sprint("h", n), ""}, {"handler.delay", observer, "10ms"}, {"line.cut", informerAgent, fmt.Sprint(n%2 == 0)},
			{"line.stall", "listwatch-scheduler", "true"}, {"traffic.rate", "", "20"},
		} {
			err = errors.Join(err, s.Turn(knob))
		}
		_, openErr := s.AddWatcher(WatcherOptions{Resource: "pods"})
		if err = errors.Join(err, openErr); err != nil {
			return err
		}
		timer := time.NewTimer(100 * time.Millisecond)
		select {
		case <-s.Ctx.Done():
			return s.Ctx.Err()
		case <-timer.C:
		}
	}
	return nil
}

// In a held world a reset ends the story at once; what it has written stands until the world goes on.
func TestAResetEndsAStoryInAHeldWorld(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		before := w.knobs()
		told := make(chan error, 1)
		go func() { told <- w.Tell(t.Context(), "everything", w.everything) }()
		time.Sleep(500 * time.Millisecond)
		w.log.Gate().Hold()
		time.Sleep(time.Second)
		if err := w.Tell(t.Context(), "another", w.everything); !apierrors.IsConflict(err) {
			t.Errorf("another story: %v", err)
		}
		if err := w.Reset(t.Context()); err != nil {
			t.Error(err)
		}
		if state := w.Knobs(); state.Traffic.Rate != 0 || len(state.Handlers) != 1 || len(w.Watchers()) != 0 {
			t.Errorf("still held: %+v, watchers %v", state, w.Watchers())
		}
		w.log.Gate().Release()
		if err := <-told; err == nil {
			t.Error("the story went on")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if names := w.podNames(t); len(names) > 0 {
			t.Errorf("there are %v", names)
		}
		if now := w.knobs(); now != before {
			t.Errorf("in the end:\n%s\nbefore\n%s", now, before)
		}
	})
}

func TestNoCommandIsTakenAfterTheEnd(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.stop()
		for what, err := range map[string]error{
			"a knob": w.Turn(t.Context(), Knob{"handler.add", "late", ""}), "a reset": w.Reset(t.Context()),
			"a story": w.Tell(t.Context(), "late", func(Telling) error { return nil }),
		} {
			if !apierrors.IsServiceUnavailable(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// slowStorage is a storage whose writes take until the test lets them go.
type slowStorage struct {
	storage.Interface
	goOn chan struct{} // closed by the test
}

func (s slowStorage) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc, runtime.Object) error {
	<-s.goOn
	return nil
}

func TestTrafficIsOverWhenItsLastWriteIs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		slow := slowStorage{goOn: make(chan struct{})}
		traffic := newTraffic(slow, clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		go traffic.Run(ctx)
		traffic.setRate(100)
		time.Sleep(time.Second)
		traffic.setRate(0)
		settled := make(chan struct{})
		go func() {
			traffic.settle()
			close(settled)
		}()
		synctest.Wait()
		select {
		case <-settled:
			t.Error("it is settled while writes are under way")
		default:
		}
		close(slow.goOn)
		<-settled
		cancel()
	})
}

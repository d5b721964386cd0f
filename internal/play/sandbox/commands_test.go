package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/pipenet"
)

const informerAgent = userAgent + "-informer"

// knobs returns the state of all knobs as text, without their descriptions and the number of changes written.
func (w *world) knobs() string {
	state := w.Knobs()
	state.Traffic.Written, state.Names = 0, nil
	return fmt.Sprintf("%+v", state)
}

// podNames returns the keys of the stored pods. It works even after the pipeline has ended.
func (w *world) podNames(t *testing.T) (names []string) {
	t.Helper()
	list := require.Value(w.store.List(t.Context(), "/registry/pods/", kubernetes.ListOptions{}))(t)
	for _, kv := range list.Kvs {
		names = append(names, string(kv.Key))
	}
	return names
}

// In a held world each command begins, and its request returns, within heldPeriod. The reset ends after the release.
func TestInAHeldWorldEveryCommandIsTakenAtOnce(t *testing.T) {
	inWorld(t, func(s *Config, _ *pipeline.ClientConfig) {
		s.RestartEtcd = func(context.Context) error { return nil }
	}, func(t *testing.T, w *world) {
		w.createAll(t, letters(3))
		w.settle()
		w.log.Gate().Hold()
		for _, knob := range []Knob{
			{"ring.capacity", "pods", "8"}, {"handler.add", "x", ""}, {"handler.delay", "x", "1s"},
			{"line.cut", informerAgent, "true"}, {"line.stall", informerAgent, "true"},
			{"line.drop", "listwatch-scheduler", ""},
			{"traffic.rate", "", "10"}, {"etcd.compact", "", ""}, {"handler.remove", "x", ""},
		} {
			began := time.Now()
			assert.NoError(t, assert.ErrorOf(w.Turn(t.Context(), nil, knob)), knob)
			took := time.Since(began)
			assert.True(t, took <= heldPeriod, "%v took %v", knob, took)
		}
		state := w.config.Connections.of(informerAgent)
		assert.True(t, state.Cut && state.Stalled, "after a cut and a stall in a held world: %+v", state)
		assert.True(t, slices.Contains(w.Knobs().Rings, RingInfo{"pods", 8, 8}), "the rings: got %+v", w.Knobs().Rings)
		began := time.Now()
		receipt, err := w.Reset(t.Context())
		assert.True(t, err == nil && receipt.UnderWay && receipt.ID != 0, "the reset: %+v, %v", receipt, err)
		took := time.Since(began)
		assert.True(t, took <= heldPeriod, "the reset took %v", took)
		knobs := w.Knobs()
		assert.True(t, knobs.Traffic.Rate == 0 && len(knobs.Handlers) == 1, "after the reset: %+v", knobs)
		_, err = w.Reset(t.Context())
		assert.True(t, apierrors.IsConflict(err) && strings.Contains(err.Error(), "the reset is under way"),
			"a second reset: %v", err)
		w.log.Gate().Release()
		time.Sleep(time.Minute)
		assert.EqualSlices(t, nil, w.podNames(t), "pods after the release")
	})
}

// TestACutCatchesAWatchThatIsBeingOpened cuts before the response, or before the client reads it: both end in errCut.
func TestACutCatchesAWatchThatIsBeingOpened(t *testing.T) {
	t.Run("not answered", func(t *testing.T) { cutsAWatchThatIsBeingOpened(t, false) })
	t.Run("answered", func(t *testing.T) { cutsAWatchThatIsBeingOpened(t, true) })
}

func cutsAWatchThatIsBeingOpened(t *testing.T, answered bool) {
	bubble.Test(t, func(t *testing.T) {
		asked, answer := make(chan struct{}), make(chan struct{})
		listener := pipenet.Listen()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(asked)
			select {
			case <-answer:
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
			}
			<-r.Context().Done()
		})}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		connections := NewConnections(listener.Client(), nil)
		ended := make(chan error, 1)
		go func() {
			request, _ := http.NewRequest(http.MethodGet, "http://pipe/api/v1/pods?watch=true", nil)
			request.Header.Set("User-Agent", "a")
			response, err := connections.Client.Do(request)
			if err == nil {
				response.Body.Close()
			}
			ended <- err
		}()
		<-asked
		assert.True(t, connections.of("a").UserAgent != "" && len(connections.list()) == 0,
			"while it opens: %+v", connections.list())
		if answered {
			connections.turn(Knob{"line.stall", "a", "true"})
			close(answer)
			synctest.Wait()
		}
		connections.turn(Knob{"line.cut", "a", "true"})
		got := <-ended
		assert.True(t, errors.Is(got, errCut), "got %v, want %v", got, errCut)
		list := connections.list()
		assert.True(t, len(list) == 1 && list[0].Cut && list[0].Streams == 0, "afterwards: %+v", list)
		connections.forget("a")
		assert.True(t, connections.of("a").UserAgent == "" && len(connections.list()) == 0, "it is not forgotten")
	})
}

func TestAStalledClientReadsNoAnswer(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		client := w.pipeline.Client.NewClient("a", nil)
		get := func(patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			return client.Get().Resource("pods").Do(ctx).Error()
		}
		require.NoError(t, get(time.Second))
		w.turn(t, "line.stall", "a", "true")
		began := w.log.Last()
		assert.True(t, errors.Is(get(time.Second), context.DeadlineExceeded), "it has read the answer")
		assert.True(t, len(w.since(t, began, is(probe.ListServed, ""))) > 0, "the request has not arrived")
		time.AfterFunc(time.Second, func() { w.turn(t, "line.stall", "a", "false") })
		assert.NoError(t, get(time.Minute))
	})
}

func TestWhatAWatcherLeavesIsForgotten(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		before := w.knobs()
		for range 3 {
			id := w.addWatcher(t, WatcherOptions{Resource: "pods"})
			agent := w.Watchers()[0].UserAgent
			w.turn(t, "line.stall", agent, "true")
			require.NoError(t, w.RemoveWatcher(t.Context(), id))
			assert.Fails(t, w.RemoveWatcher(t.Context(), id), apierrors.IsNotFound, "removing it again")
			synctest.Wait()
			assert.Equal(t, "", w.config.Connections.of(agent).UserAgent, "%s is still known", agent)
		}
		assert.Equal(t, before, w.knobs(), "left")
		assert.True(t, len(w.before) <= 1, "to put back are %v", w.before)
	})
}

func TestAResetIsNotDisturbedByOtherDeletions(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.createAll(t, letters(40))
		w.log.Gate().Close(probe.Query{Station: probe.Etcd, Resource: "pods"})
		resetting := make(chan error, 1)
		go func() { resetting <- assert.ErrorOf(w.Reset(t.Context())) }()
		synctest.Wait() // the gate holds the first deletions at their commit
		w.log.Gate().Release()
		// Both the reset and the test delete pods. Either may meet a conflict; the gate holds neither of them.
		for _, name := range letters(40) {
			key := "/registry/pods/default/" + name
			_ = w.config.Pipeline.Server.Storage("pods").Delete(t.Context(), key, &corev1.Pod{}, nil, nil)
		}
		assert.NoError(t, <-resetting)
	})
}

// TestAWatcherDoesNotGoOnFromInsideAState: a state is sent in key order, so no watcher may resume from inside it.
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
		"the state is over": {"", []watch.Event{event(watch.Added, pod("a", "9")), event(watch.Bookmark,
			pod("", "10")), event(watch.Added, pod("b", "11"))}, "11"},
		"a change shows it": {"", []watch.Event{event(watch.Added, pod("a", "9")), event(watch.Modified,
			pod("b", "12"))}, "12"},
		"from a version on": {"5", []watch.Event{event(watch.Added, pod("a", "9"))}, "9"},
		"expired":           {"5", []watch.Event{event(watch.Error, &metav1.Status{})}, ""},
	} {
		each := &watcher{resourceVersion: test.from}
		each.begin()
		for _, event := range test.events {
			each.remember(event)
		}
		assert.Equal(t, test.want, each.resourceVersion, "%s: goes on from", name)
	}
}

// fakes stands in for a restart of etcd and for the program's switches. A restart or a switch takes a second; a restart
// stops when its context ends.
type fakes struct{ done atomic.Int32 }

func (f *fakes) restart(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
	}
	f.done.Add(1)
	return nil
}

var _ Switcher = (*fakes)(nil)

func (f *fakes) Switch(string, string) (again func() error, err error) {
	return func() error {
		time.Sleep(time.Second)
		f.done.Add(1)
		return nil
	}, nil
}

func (f *fakes) Restore() (again func() error, err error) { return nil, nil }

func (f *fakes) Now() map[string]string { return nil }

// TestACommandWhoseRequestGoesIsDone cancels the requests of slow commands: a reset's while the world is held, and the
// others' while they work. The commands must still run to their ends.
func TestACommandWhoseRequestGoesIsDone(t *testing.T) {
	turn := func(name, target, value string) func(context.Context, *world) error {
		return func(ctx context.Context, w *world) error {
			_, err := w.Turn(ctx, nil, Knob{name, target, value})
			return err
		}
	}
	f := &fakes{}
	faked := func(*world) bool { return f.done.Swap(0) == 1 }
	for name, test := range map[string]struct {
		do   func(ctx context.Context, w *world) error
		done func(w *world) bool
	}{
		"reset": {
			func(ctx context.Context, w *world) error { _, err := w.Reset(ctx); return err },
			func(w *world) bool { return len(w.podNames(t)) == 0 && len(w.handlers.all()) == 1 },
		},
		"etcd.restart": {turn("etcd.restart", "", ""), faked},
		"switch":       {turn("switch", "fifo", "delta"), faked},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(s *Config, _ *pipeline.ClientConfig) {
				s.RestartEtcd, s.Switcher = f.restart, f
				s.Gate = nil // without a gate, a request waits for its command's end even in a held world
			}
			inWorld(t, change, func(t *testing.T, w *world) {
				w.createAll(t, letters(1))
				w.turn(t, "handler.add", "x", "")
				w.settle()
				w.log.Gate().Hold()
				ctx, leave := context.WithCancel(t.Context())
				answered := make(chan error, 1)
				go func() { answered <- test.do(ctx, w) }()
				time.Sleep(100 * time.Millisecond)
				leave()
				assert.True(t, apierrors.IsServiceUnavailable(<-answered), "the request got another answer")
				w.log.Gate().Release()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				assert.True(t, test.done(w) && w.running == 0, "it is not done: %s", w.knobs())
			})
		})
	}
}

// TestACancelledStoryChangesNothingMore has a cancelled story send commands, which must be refused.
func TestACancelledStoryChangesNothingMore(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		require.NoError(t, w.Play(t.Context(), "late", func(s *Run) error {
			s.cancel()
			sent, before := context.WithoutCancel(s.Ctx), w.knobs()
			_, turning := w.Turn(sent, s, Knob{"handler.delay", observer, "1m"})
			_, _, opening := w.AddWatcher(sent, s, WatcherOptions{Resource: "pods"})
			for what, err := range map[string]error{"a knob": turning, "a watcher": opening} {
				assert.True(t, strings.Contains(fmt.Sprint(err), errCancelled.Error()), "%s: %v", what, err)
			}
			assert.Equal(t, before, w.knobs(), "a knob was turned")
			assert.True(t, len(w.watchers.info()) == 0, "a watcher was opened")
			return nil
		}))
	})
}

// everything is a story that turns many knobs, opens watchers and creates pods.
func (w *world) everything(s *Run) error {
	client := w.pipeline.Client.NewClient("story-everything", nil)
	for n := range 20 {
		pod := apitest.Pod(fmt.Sprint("e", n), corev1.RestartPolicyAlways)
		pod.Labels[StoryLabel], pod.Spec.NodeName = "everything", "nowhere"
		err := client.Post().Namespace("default").Resource("pods").Body(pod).Do(s.Writing).Error()
		for _, knob := range []Knob{
			{"ring.capacity", "pods", fmt.Sprint(n + 4)},
			{"handler.add", fmt.Sprint("h", n), ""}, {"handler.delay", observer, "10ms"},
			{"line.cut", informerAgent, fmt.Sprint(n%2 == 0)},
			{"line.stall", "listwatch-scheduler", "true"}, {"traffic.rate", "", "20"},
		} {
			_, turnErr := w.Turn(s.Ctx, s, knob)
			err = errors.Join(err, turnErr)
		}
		_, _, openErr := w.AddWatcher(s.Ctx, s, WatcherOptions{Resource: "pods"})
		if err = errors.Join(err, openErr); err != nil {
			return err
		}
		select {
		case <-s.Ctx.Done():
			return s.Ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// In a held world a reset turns the story's knobs back and closes its watchers. Its pods remain until the release.
func TestAResetEndsAStoryInAHeldWorld(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		before := w.knobs()
		told := make(chan error, 1)
		go func() { told <- w.Play(t.Context(), "everything", w.everything) }()
		time.Sleep(505 * time.Millisecond) // between two beats of the story, and between two writes of the traffic
		synctest.Wait()
		select {
		case err := <-told:
			t.Fatalf("the story is over before the reset: mend the step that fails in everything: %v", err)
		default:
		}
		w.log.Gate().Hold()
		time.Sleep(time.Second)
		another := w.Play(t.Context(), "another", func(*Run) error { return nil }) // a gate does not delay the refusal
		assert.Fails(t, another, apierrors.IsConflict, "another story")
		assert.NoError(t, assert.ErrorOf(w.Reset(t.Context())))
		if state := w.Knobs(); state.Traffic.Rate != 0 || len(state.Handlers) != 1 || len(w.Watchers()) != 0 {
			t.Errorf("still held: %+v, watchers %v", state, w.Watchers())
		}
		w.log.Gate().Release()
		assert.True(t, <-told != nil, "the story went on")
		time.Sleep(time.Minute)
		synctest.Wait()
		names := w.podNames(t)
		assert.True(t, len(names) == 0, "there are %v", names)
		assert.Equal(t, before, w.knobs(), "in the end")
	})
}

// slowStorage is a storage whose writes end when the test closes goOn.
type slowStorage struct {
	storage.Interface
	goOn chan struct{} // closed by the test
}

func (s slowStorage) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions,
	storage.UpdateFunc, runtime.Object) error {
	<-s.goOn
	return nil
}

func TestTrafficIsOverWhenItsLastWriteIs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		slow := slowStorage{goOn: make(chan struct{})}
		traffic := newTraffic(slow, clock.RealClock{}, 0)
		bubble.Go(t, "test.traffic", traffic.Run)
		traffic.setRate(100)
		time.Sleep(time.Second)
		traffic.setRate(0)
		waiting, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		err := traffic.settle(waiting)
		assert.True(t, errors.Is(err, context.DeadlineExceeded), "while writes are under way: settled with %v", err)
		close(slow.goOn)
		assert.NoError(t, traffic.settle(t.Context()))
	})
}

// TestHowACommandEndsInAHeldWorldIsARecord expects a record only for a command that outlives its request.
func TestHowACommandEndsInAHeldWorldIsARecord(t *testing.T) {
	var fails error
	inWorld(t, func(s *Config, _ *pipeline.ClientConfig) {
		s.RestartEtcd = func(context.Context) error {
			time.Sleep(time.Minute)
			return fails
		}
	}, func(t *testing.T, w *world) {
		for _, fails = range []error{errors.New("the disk is gone"), nil} {
			w.log.Gate().Hold()
			seq, began := w.log.Last(), time.Now()
			receipt, err := w.Turn(t.Context(), nil, Knob{Name: "etcd.restart"})
			took := time.Since(began)
			assert.True(t, err == nil && receipt.UnderWay && took <= heldPeriod, "answered %+v after %v: %v", receipt,
				took, err)
			w.log.Gate().Release()
			time.Sleep(2 * time.Minute)
			ends := w.since(t, seq, is(probe.CommandEnded, ""))
			assert.True(t, len(ends) == 1 && ends[0].Args[0] == int(receipt.ID) &&
				(fails == nil || strings.Contains(ends[0].Field(probe.FieldError), fails.Error())),
				"how it ended: got %v, want one record about %v", ends, fails)
		}
		seq := w.log.Last()
		w.turn(t, "etcd.restart", "", "")
		ends := w.since(t, seq, is(probe.CommandEnded, ""))
		assert.True(t, len(ends) == 0, "its request has waited for the end, and the log says so, too: %v", ends)
	})
}

// watches opens a watch of pods, as the page's console does.
func (w *world) watches(t *testing.T, ctx context.Context) (*http.Response, error) {
	t.Helper()
	r := require.Value(http.NewRequestWithContext(ctx, "GET", "/api/v1/namespaces/default/pods?watch=true", nil))(t)
	r.Close = true
	return w.Ask(r)
}

func TestAResetEndsWhatConsolesHaveAsked(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range maxAsked {
			answer := require.Value(w.watches(t, ctx))(t)
			defer answer.Body.Close()
		}
		assert.Fails(t, assert.ErrorOf(w.watches(t, ctx)), apierrors.IsTooManyRequests, "one more")
		cancel()
		synctest.Wait()
	})
	inWorld(t, nil, func(t *testing.T, w *world) {
		answer := require.Value(w.watches(t, t.Context()))(t)
		require.Value(w.Reset(t.Context()))(t)
		_, err := io.ReadAll(answer.Body)
		assert.Equal(t, io.ErrUnexpectedEOF, err, "the end of the answer")
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, 0, w.watchers.asked.Load(), "open requests")
		assert.Equal(t, Connection{}, w.config.Connections.of(answer.Request.UserAgent()), "its line")
	})
}

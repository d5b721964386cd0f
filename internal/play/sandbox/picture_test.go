package sandbox

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	cacher "listwatch/chapters/06-cacher"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

func TestAWatcherOfThePageComesAndGoes(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		before := len(w.pipeline.Server.Snapshot().Cachers[3].Watchers)
		id, _, err := w.AddWatcher(t.Context(), WatcherOptions{Resource: "pods", LabelSelector: "app=a"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		watchers := w.pipeline.Server.Snapshot().Cachers[3].Watchers
		if len(watchers) != before+1 || watchers[before].Text != "/registry/pods/ labels app=a" {
			t.Errorf("after Add: got %+v", watchers)
		}
		if err := w.RemoveWatcher(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := len(w.pipeline.Server.Snapshot().Cachers[3].Watchers); got != before {
			t.Errorf("after Remove: got %d watchers, want %d", got, before)
		}
		if err := w.RemoveWatcher(t.Context(), id); !apierrors.IsNotFound(err) {
			t.Errorf("removing it again: got %v, want NotFound", err)
		}
	})
}

func TestAWatcherThatTheServerRefusesIsNotKept(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		_, _, err := w.AddWatcher(t.Context(), WatcherOptions{Resource: "pods", FieldSelector: "spec.colour=blue"})
		if !apierrors.IsBadRequest(err) {
			t.Errorf("got %v, want BadRequest", err)
		}
		if list := w.Watchers(); len(list) != 0 {
			t.Errorf("kept %+v", list)
		}
	})
}

func TestTheDemoMovesAndStaysSmall(t *testing.T) {
	inWorld(t, func(s *Config, _ *pipeline.ClientConfig) { s.Demo = true }, func(t *testing.T, w *world) {
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		pods := w.pipeline.Snapshot().Client.Informer.Indexer.Objects
		if pods == 0 || pods > 3*demoPods {
			t.Errorf("after two minutes of demo: %d pods", pods)
		}
		if rv := w.pipeline.Server.Snapshot().Cachers[3].Cache.ResourceVersion; rv < 40 {
			t.Errorf("after two minutes of demo the cache stands at %d", rv)
		}
	})
}

// TestThePictureNeverLies: whenever nothing happens, the fold of the log is what the stations say of themselves.
func TestThePictureNeverLies(t *testing.T) {
	for _, fifo := range []string{"real", "delta"} {
		t.Run(fifo, func(t *testing.T) {
			inWorld(t, func(s *Config, c *pipeline.ClientConfig) { s.Demo, c.FIFO = true, fifo }, func(t *testing.T,
				w *world) {
				state, seq := fold.New(), uint64(0)
				for round := range 8 {
					if round == 4 {
						w.patch(t)
					}
					time.Sleep(7*time.Second + 350*time.Millisecond)
					synctest.Wait()
					records, ok := w.log.Since(nil, seq, 1<<16)
					if !ok {
						t.Fatal("the log has moved on")
					}
					state.Apply(records)
					seq += uint64(len(records))
					comparePicture(t, state.Resources["pods"], w.pipeline.Snapshot())
				}
			})
		})
	}
}

// patch creates a pod and changes it a few times in a row, so that something is in flight at the same time.
func (w *world) patch(t *testing.T) {
	t.Helper()
	w.create(t, podNamed("b", corev1.RestartPolicyAlways))
	for n := range 5 {
		body := fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, n)
		if err := w.client.Patch(types.MergePatchType).Namespace("default").Resource("pods").Name("b").Body(body).
			Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
}

func comparePicture(t *testing.T, pods *fold.Resource, s pipeline.Snapshot) {
	t.Helper()
	i := slices.IndexFunc(s.Server.Cachers, func(c cacher.Snapshot) bool { return c.Resource == "pods" })
	cached, informer := s.Server.Cachers[i], s.Client.Informer
	ring := pods.Ring
	if got, want := []int64{ring.Start, ring.End, ring.Capacity, int64(ring.Newest)},
		[]int64{int64(cached.Cache.Start), int64(cached.Cache.End), int64(cached.Cache.Capacity),
			int64(cached.Cache.ResourceVersion)}; !slices.Equal(got, want) {
		t.Errorf("ring start, end, capacity, newest: the picture shows %v, the cache says %v", got, want)
	}
	compareCount(t, "objects on the store shelf", pods.Shelves[fold.ShelfName(probe.Store, "cacher")].N,
		cached.Cache.Objects)
	compareCount(t, "objects on the indexer shelf", pods.Shelves[fold.ShelfName(probe.Indexer, "informer")].N,
		informer.Indexer.Objects)
	compareCount(t, "objects on the shelf of the scheduler's indexer", pods.Shelves[fold.ShelfName(probe.Indexer,
		"scheduler-informer")].N, s.Client.Unfinished.Indexer.Objects)
	compareCount(t, "length of incoming", pods.Subjects["cacher"].Queues["incoming"].Len, cached.IncomingLen)
	compareCount(t, "length of the fifo", pods.Subjects["informer"].Queues["fifo"].Len, informer.FIFO.Len)
	compareCount(t, "length of the scheduler's workqueue", pods.Subjects["scheduler"].Queues["workqueue"].Len,
		s.Client.Scheduler.Queue.Len)
	watchers := 0
	for id, subject := range pods.Subjects {
		if subject.Kind != "watcher" {
			continue
		}
		watchers++
		for name, queue := range subject.Queues {
			compareCount(t, "length of "+name+" of "+id, queue.Len, 0)
		}
	}
	compareCount(t, "watchers", int64(watchers), len(cached.Watchers))
	for _, listener := range append(informer.Listeners, s.Client.Unfinished.Listeners...) {
		compareCount(t, "pending of "+listener.ID, pendingOf(pods, listener.ID), listener.PendingLen)
	}
	compareWaits(t, pods)
}

// compareWaits holds that at a quiet moment no goroutine is held up, and that the goroutines that take from the
// client's queues say that they have nothing to do.
func compareWaits(t *testing.T, pods *fold.Resource) {
	t.Helper()
	for key, waits := range pods.Waits {
		if kind := waits[0].Kind; kind != string(probe.ForWork) {
			t.Errorf("the picture shows that %s waits for %q, while nothing happens", key, kind)
		}
	}
	for _, key := range []string{"FIFOWaited informer", "WorkWaited scheduler"} {
		compareCount(t, key, int64(len(pods.Waits[key])), 1)
	}
}

func pendingOf(pods *fold.Resource, id string) int64 {
	if queue := pods.Subjects[id].Queues["pending"]; queue != nil {
		return queue.Len
	}
	return 0
}

func compareCount(t *testing.T, what string, picture int64, truth int) {
	t.Helper()
	if picture != int64(truth) {
		t.Errorf("%s: the picture shows %d, the station says %d", what, picture, truth)
	}
}

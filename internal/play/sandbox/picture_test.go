package sandbox

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	cacher "listwatch/chapters/06-cacher"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/rules"
)

// TestThePictureNeverLies runs the demo and three watchers. Whenever nothing happens, the fold of the log is what the
// stations say of themselves; no rule is broken on the way; and the demo moves and stays small.
func TestThePictureNeverLies(t *testing.T) {
	for _, fifo := range []string{"real", "delta"} {
		t.Run(fifo, func(t *testing.T) {
			change := func(s *Config, c *pipeline.ClientConfig) { s.Demo, c.FIFO = true, fifo }
			inWorld(t, change, func(t *testing.T, w *world) {
				for range 3 {
					w.addWatcher(t, WatcherOptions{Resource: "pods", Bookmarks: true})
				}
				state, checker, seq := fold.New(), rules.New(), uint64(0)
				for round := range 18 {
					if round == 4 {
						w.patch(t)
					}
					time.Sleep(7*time.Second + 350*time.Millisecond)
					synctest.Wait()
					records, ok := w.log.Since(nil, seq, 1<<16)
					require.True(t, ok, "the log has moved on")
					seq += uint64(len(records))
					state.Apply(records)
					for _, breach := range checker.Apply(records) {
						t.Error(breach)
					}
					comparePicture(t, state.Resources["pods"], w.pipeline.Snapshot())
				}
				s := w.pipeline.Snapshot()
				pods := s.Client.Informer.Indexer.Objects
				assert.True(t, pods != 0 && pods <= 3*demoPods, "after two minutes of demo: %d pods", pods)
				rv := cacheOfPods(s).Cache.ResourceVersion
				assert.True(t, rv >= 40, "after two minutes of demo the cache stands at %d", rv)
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

func cacheOfPods(s pipeline.Snapshot) cacher.Snapshot {
	i := slices.IndexFunc(s.Server.Cachers, func(c cacher.Snapshot) bool { return c.Resource == "pods" })
	return s.Server.Cachers[i]
}

func comparePicture(t *testing.T, pods *fold.Resource, s pipeline.Snapshot) {
	t.Helper()
	cached, informer, scheduler := cacheOfPods(s), s.Client.Informer, s.Client.Unfinished
	compare := func(what string, picture int64, truth int) {
		t.Helper()
		assert.Equal(t, int64(truth), picture, "%s: the picture shows %d, the station says %d", what, picture, truth)
	}
	shelf := func(station probe.Station, subject string) int64 {
		return pods.Shelves[fold.ShelfName(station, subject)].N
	}
	length := func(subject, queue string) int64 {
		if queue := pods.Subjects[subject].Queues[queue]; queue != nil {
			return queue.Len
		}
		return 0
	}
	compare("the ring's start", pods.Ring.Start, int(cached.Cache.Start))
	compare("the ring's end", pods.Ring.End, int(cached.Cache.End))
	compare("the ring's capacity", pods.Ring.Capacity, cached.Cache.Capacity)
	compare("the ring's newest", int64(pods.Ring.Newest), int(cached.Cache.ResourceVersion))
	compare("objects on the store shelf", shelf(probe.Store, "cacher"), cached.Cache.Objects)
	compare("objects on the indexer shelf", shelf(probe.Indexer, "informer"), informer.Indexer.Objects)
	compare("objects on the shelf of the scheduler's indexer", shelf(probe.Indexer, "scheduler-informer"),
		scheduler.Indexer.Objects)
	compare("length of incoming", length("cacher", "incoming"), cached.IncomingLen)
	compare("length of the fifo", length("informer", "fifo"), informer.FIFO.Len)
	compare("length of the scheduler's workqueue", length("scheduler", "workqueue"), s.Client.Scheduler.Queue.Len)
	watchers := 0
	for id, subject := range pods.Subjects {
		if subject.Kind != "watcher" {
			continue
		}
		watchers++
		for name, queue := range subject.Queues {
			compare("length of "+name+" of "+id, queue.Len, 0)
		}
	}
	compare("watchers", int64(watchers), len(cached.Watchers))
	for _, listener := range append(informer.Listeners, scheduler.Listeners...) {
		compare("pending of "+listener.ID, length(listener.ID, "pending"), listener.PendingLen)
	}
	// At a quiet moment no goroutine is held up, and those that take from the client's queues have nothing to do.
	for key, waits := range pods.Waits {
		assert.Equal(t, string(probe.ForWork), waits[0].Kind, "the picture shows that %s waits for", key)
	}
	for _, key := range []string{"FIFOWaited informer", "WorkWaited scheduler"} {
		compare(key, int64(len(pods.Waits[key])), 1)
	}
}

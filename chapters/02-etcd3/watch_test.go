package etcd3

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/server/etcdnode"
)

// trace collects what a watch delivers.
type trace struct {
	watch.Interface
}

// start begins a watch that ends with the test.
func start(t *testing.T, s *Store, key string, opts storage.ListOptions) trace {
	t.Helper()
	w := require.Value(s.Watch(t.Context(), key, opts))(t)
	return trace{w}
}

// next returns what has been delivered until nothing moves any more; "closed" at the end of the channel. It must
// be called in a bubble.
func (w trace) next() []string { return bubble.Drain(w.ResultChan(), line) }

func (w trace) want(t *testing.T, want ...string) {
	t.Helper()
	assert.EqualSlices(t, want, w.next())
}

// A state of more than one page is still one state: without a hole where one page ends, and without what was written
// while the reader was slow. The two objects on either side of the end are neighbours in the order of keys.
func TestAStateOfManyPagesIsThatOfOneRevision(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, client := newMVCC(t)
		const n = maxLimit + 10
		want := make([]string, 0, n)
		for i := range n {
			p := pod(fmt.Sprintf("p%05d", i), "")
			if i == maxLimit {
				p.Name = fmt.Sprintf("p%05d-1", i-1)
			}
			data := require.Value(runtime.Encode(s.codec, p))(t)
			want = append(want, fmt.Sprintf("ADDED %s %d", p.Name, client.Put(key(p.Name), data)))
		}
		at := client.Revision()
		last := fmt.Sprintf("p%05d", n-1)
		w := start(t, s, prefix, initial())
		synctest.Wait() // the channels are full, and the first page is being read
		relabel(t, s, last, "web")
		want = append(want, fmt.Sprintf("BOOKMARK %d end", at), fmt.Sprintf("MODIFIED %s %d web", last, at+1))
		got := w.next()
		assert.True(t, slices.Equal(got, want),
			"got %d events, want %d; the last are %q, want %q", len(got), len(want), got[max(0, len(got)-3):], want[n-1:])
	})
}

func TestWhoeverCancelledIsNotToldOfIt(t *testing.T) {
	s, _ := newMVCC(t)
	for name, err := range map[string]error{"ours": context.Canceled, "etcd's": status.Error(codes.Canceled,
		"the client is closing")} {
		ended := false
		w := s.newStream(prefix, 0, storage.ListOptions{}, func() { ended = true })
		w.sendError(t.Context(), err)
		assert.True(t, len(w.resultChan) == 0 && ended, "%s: %d events, ended: %t", name, len(w.resultChan), ended)
	}
}

// writeThrough sets the label of a pod to 1…n, again and again until each write is known to have succeeded.
func writeThrough(ctx context.Context, s *Store, name string, n int) {
	for i := 1; i <= n; i++ {
		set := func(current runtime.Object) (runtime.Object, error) {
			p := current.(*corev1.Pod)
			p.Namespace, p.Name, p.Labels = "default", name, map[string]string{"app": fmt.Sprint(i)}
			return p, nil
		}
		for s.GuaranteedUpdate(ctx, key(name), &corev1.Pod{}, true, nil, set, nil) != nil {
			// etcd is away: the write may or may not have happened, and doing it again is safe
		}
	}
}

func TestNothingIsLostWhenEtcdRestartsUnderLoad(t *testing.T) {
	const writers, each = 4, 40
	for _, age := range []string{WatcherEtcd3, WatcherEtcd2} {
		t.Run(age, func(t *testing.T) {
			node := require.Value(etcdnode.Start(t.Context(), etcdnode.Options{Dir: t.TempDir()}))(t)
			defer node.Close()
			s := newStore(t, NewClient(node.Client()), func(cfg *Config) { cfg.Watcher = age })
			w := require.Value(s.Watch(t.Context(), prefix, initial()))(t)
			if got := line(<-w.ResultChan()); got != "BOOKMARK 1 end" {
				// a state is in key order, only what follows is in the order of revisions
				t.Fatalf("got %s, want the end of an empty state", got)
			}
			var wg sync.WaitGroup
			for n := range writers {
				wg.Go(func() { writeThrough(t.Context(), s, fmt.Sprintf("p%d", n), each) })
			}
			for range 3 {
				assert.NoError(t, node.Restart(t.Context()))
			}
			seen := map[string][]string{}
			last := uint64(0)
			for done := 0; done < writers; {
				e := <-w.ResultChan()
				p, ok := e.Object.(*corev1.Pod)
				require.True(t, ok, "got %s", line(e))
				if rv := rvOf(p); p.Name != "" {
					require.True(t, rv > last, "%s after %d", line(e), last)
					last = rv
					seen[p.Name] = append(seen[p.Name], p.Labels["app"])
				}
				if p.Labels["app"] == fmt.Sprint(each) {
					done++
				}
			}
			wg.Wait()
			w.Stop()
			for range w.ResultChan() {
			}
			var want []string
			for i := 1; i <= each; i++ {
				want = append(want, fmt.Sprint(i))
			}
			for name, got := range seen {
				assert.EqualSlices(t, want, got, "%s: got %q, want 1…%d", name, got, each)
			}
		})
	}
}

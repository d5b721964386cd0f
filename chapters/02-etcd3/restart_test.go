package etcd3

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/server/etcdnode"
)

// writeThrough sets the label of a pod to 1…n, again and again until each write is known to have succeeded.
func writeThrough(s *Store, name string, n int) {
	for i := 1; i <= n; i++ {
		set := func(current runtime.Object) (runtime.Object, error) {
			p := current.(*corev1.Pod)
			p.Namespace, p.Name, p.Labels = "default", name, map[string]string{"app": fmt.Sprint(i)}
			return p, nil
		}
		for s.GuaranteedUpdate(context.Background(), key(name), &corev1.Pod{}, true, nil, set, nil) != nil {
			// etcd is away: the write may or may not have happened, and doing it again is safe
		}
	}
}

func TestNothingIsLostWhenEtcdRestartsUnderLoad(t *testing.T) {
	const writers, each = 4, 40
	for _, age := range []string{WatcherEtcd3, WatcherEtcd2} {
		t.Run(age, func(t *testing.T) {
			node, err := etcdnode.Start(context.Background(), etcdnode.Options{Dir: t.TempDir()})
			require.NoError(t, err)
			defer node.Close()
			s := newStore(t, NewClient(node.Client()), func(cfg *Config) { cfg.Watcher = age })
			w, err := s.Watch(t.Context(), prefix, initial())
			require.NoError(t, err)
			if got := line(<-w.ResultChan()); got != "BOOKMARK 1 end" {
				// a state is in key order, only what follows is in the order of revisions
				t.Fatalf("got %s, want the end of an empty state", got)
			}
			var wg sync.WaitGroup
			for n := range writers {
				wg.Go(func() { writeThrough(s, fmt.Sprintf("p%d", n), each) })
			}
			for range 3 {
				assert.NoError(t, node.Restart(context.Background()))
			}
			seen := map[string][]string{}
			last := uint64(0)
			for done := 0; done < writers; {
				e := <-w.ResultChan()
				p, ok := e.Object.(*corev1.Pod)
				if !ok {
					t.Fatalf("got %s", line(e))
				}
				if rv := rvOf(p); p.Name != "" {
					if rv <= last {
						t.Fatalf("%s after %d", line(e), last)
					}
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
				assert.EqualSlices(t, got, want, "%s: got %q, want 1…%d", name, got, each)
			}
		})
	}
}

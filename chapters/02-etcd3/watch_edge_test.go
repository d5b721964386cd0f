package etcd3

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/mvcc"
)

// inBubble runs a test for each age of the watcher, over an in-memory etcd.
func inBubble(t *testing.T, test func(t *testing.T, s *Store, client *mvcc.Store)) {
	for _, age := range []string{WatcherEtcd3, WatcherEtcd2} {
		bubble.Run(t, age, func(t *testing.T) {
			client := mvcc.New(clock.RealClock{})
			test(t, newStore(t, client, func(cfg *Config) { cfg.Watcher = age }), client)
		})
	}
}

// initial returns options for a watch of all pods that begins with the current state and is told where that ends.
func initial() storage.ListOptions {
	opts := everything()
	opts.SendInitialEvents = new(true)
	opts.Predicate.AllowWatchBookmarks = true
	return opts
}

func TestInitialStateFromTheFutureIsTooLarge(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store, _ *mvcc.Store) {
		opts := initial()
		opts.ResourceVersion = "9"
		w := start(t, s, opts)
		w.want(t, "ERROR 504 Timeout", "closed")
	})
}

func TestProgressBecomesABookmarkBehindItsEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store, client *mvcc.Store) {
		opts := everything()
		opts.ProgressNotify = true
		w := start(t, s, opts)
		w.want(t)
		create(t, s, pod("a", ""))           // 2
		client.Put("/registry/nodes/n", nil) // 3
		require.NoError(t, s.RequestWatchProgress(t.Context()))
		w.want(t, "ADDED a 2", "BOOKMARK 3")
		client.Put("/registry/nodes/n", nil) // 4
		time.Sleep(time.Hour)                // idle
		got := w.next()
		assert.True(t, slices.Contains(got, "BOOKMARK 4"), "after an idle hour: got %q, want a bookmark at 4", got)
	})
}

// A watch that begins now has not caught up, as etcd sees it, until something is written.
func TestAQuietWatchOfOneResourceDoesNotHoldUpTheProgressOfAnother(t *testing.T) {
	for name, client := range map[string]Client{"etcd": newEtcd(t), "memory": mvcc.New(clock.RealClock{})} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			pods := newStore(t, client, nil)
			events := newStore(t, client, func(cfg *Config) { cfg.ResourcePrefix = "/registry/events" })
			opts := everything()
			opts.ProgressNotify = true
			w := require.Value(pods.Watch(ctx, prefix, opts))(t)
			create(t, pods, pod("a", "")) // 2, which tells that the watch is there
			<-w.ResultChan()
			if err := events.Create(ctx, "/registry/events/default/e", pod("e", ""), nil); err != nil { // 3
				t.Fatal(err)
			}
			quiet := require.Value(events.Watch(ctx, "/registry/events", everything()))(t)
			<-quiet.ResultChan()
			// A reader that waits for 3 asks until it is told: here for as long as it takes.
			for told := false; !told; {
				require.NoError(t, pods.RequestWatchProgress(ctx))
				select {
				case e := <-w.ResultChan():
					told = line(e) == "BOOKMARK 3"
				case <-time.After(50 * time.Millisecond):
				}
			}
			w.Stop()
			quiet.Stop()
		})
	}
}

func TestUndecodableValueEndsTheNewWatchAndIsSkippedByTheOld(t *testing.T) {
	want := map[string][]string{
		WatcherEtcd3: {"ADDED a 2", "ERROR 500 InternalError", "closed"},
		WatcherEtcd2: {"ADDED a 2", "ADDED c 4", "DELETED c 6"},
	}
	inBubble(t, func(t *testing.T, s *Store, client *mvcc.Store) {
		w := start(t, s, everything())
		w.want(t)
		create(t, s, pod("a", ""))            // 2
		client.Put(key("b"), []byte("bad"))   // 3
		create(t, s, pod("c", ""))            // 4
		client.Put(key("b"), []byte("worse")) // 5
		remove(t, s, "c")                     // 6
		require.Value(client.OptimisticDelete(t.Context(), key("b"), 5, kubernetes.DeleteOptions{}))(t)
		w.want(t, want[s.watcher]...)
	})
}

func TestObjectThatBecomesReadableCountsAsNewForTheOldWatch(t *testing.T) {
	want := map[string][]string{
		WatcherEtcd3: {"ERROR 500 InternalError", "closed"}, // the old state is needed, and does not decode
		WatcherEtcd2: {"ADDED b 3 web"},
	}
	inBubble(t, func(t *testing.T, s *Store, client *mvcc.Store) {
		client.Put(key("b"), []byte("bad")) // 2
		data := require.Value(runtime.Encode(s.codec, pod("b", "web")))(t)
		opts := everything()
		opts.ResourceVersion = "2"
		opts.Predicate = selecting(t, "app=web")
		w := start(t, s, opts)
		client.Put(key("b"), data) // 3
		w.want(t, want[s.watcher]...)
	})
}

func TestTheEndOfAnUndecodableObjectIsAStoreReadError(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store, client *mvcc.Store) {
		client.Put(key("b"), []byte("bad")) // 2
		opts := everything()
		opts.ResourceVersion = "2"
		w := start(t, s, opts)
		require.Value(client.OptimisticDelete(t.Context(), key("b"), 2, kubernetes.DeleteOptions{}))(t)
		w.want(t, map[string][]string{WatcherEtcd3: {"ERROR 500 StorageReadError", "closed"}}[s.watcher]...)
	})
}

func TestWatchRightAtTheCompactedRevisionIsExpired(t *testing.T) {
	onBoth(t, func(t *testing.T, client Client) {
		s := newStore(t, client, nil)
		create(t, s, pod("a", ""))  // 2
		relabel(t, s, "a", "web")   // 3
		relabel(t, s, "a", "other") // 4
		require.NoError(t, client.CompactHistory(t.Context(), 4))
		for _, rv := range []string{"1", "2", "3"} { // of 3 the next event is there, but not what it changed
			opts := everything()
			opts.ResourceVersion = rv
			var got []string
			for e := range start(t, s, opts).ResultChan() {
				got = append(got, line(e))
			}
			assert.EqualSlices(t, []string{"ERROR 410 Expired"}, got, "after %s", rv)
		}
	})
}

func TestStopAndCancelCloseTheChannelOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store, _ *mvcc.Store) {
		create(t, s, pod("a", ""))
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			w := require.Value(s.Watch(ctx, prefix, everything()))(t)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(w.Stop)
			}
			wg.Go(cancel)
			for range w.ResultChan() {
			}
			wg.Wait()
		}
		synctest.Wait()
		assert.Equal(t, 0, len(s.Snapshot().Watches), "watches that are still under way")
	})
}

func TestSlowReaderStopsTheReadingOfEtcd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, _ := newMVCC(t)
		w := start(t, s, everything())
		const n = 500
		for i := range n {
			create(t, s, pod(fmt.Sprintf("p%03d", i), ""))
		}
		synctest.Wait()
		got := s.Snapshot().Watches
		require.True(t, len(got) == 1 && got[0].ResultLen == outgoingBufSize && got[0].IncomingLen == incomingBufSize &&
			got[0].ID == "etcd3-1", "got %+v, want both channels full", got)
		lines := w.next()
		assert.True(t, len(lines) == n && slices.IsSorted(lines),
			"got %d events, sorted %v, want all %d in order", len(lines), slices.IsSorted(lines), n)
	})
}

func TestQueueReportsAddUp(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *Store, client *mvcc.Store) {
		log := probe.NewLog(clock.RealClock{}, 1024)
		s := newStore(t, client, func(cfg *Config) { cfg.Probe = probe.New(log).Resource("pods") })
		w := start(t, s, initial())
		w.want(t, "BOOKMARK 1 end")
		create(t, s, pod("a", ""))
		remove(t, s, "a")
		w.want(t, "ADDED a 2", "DELETED a 3")
		w.Stop()
		w.want(t, "closed")
		synctest.Wait()
		count, last := map[probe.Point]int{}, probe.Point(0)
		for _, r := range probetest.Records(log) {
			last = r.Point
			count[last]++
			assert.False(t, r.Point.Info().Station == probe.Etcd3 && r.Subject != "etcd3-1",
				"%v reported by %q", r.Point, r.Subject)
		}
		for _, p := range []probe.Point{probe.Etcd3IncomingSent, probe.Etcd3IncomingReceived, probe.Etcd3ResultSent} {
			assert.Equal(t, 3, count[p], p)
		}
		assert.True(t, count[probe.WatchChanOpened] == 1 && count[probe.WatchChanClosed] == 1 &&
			last == probe.WatchChanClosed, "got %v, want one opened and one closed, the latter last", count)
	})
}

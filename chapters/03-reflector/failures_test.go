package reflector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
)

var (
	pods      = schema.GroupResource{Resource: "pods"}
	refused   = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	busy      = apierrors.NewTooManyRequests("later", 0)
	expired   = apierrors.NewResourceExpired("too old resource version: 5 (9)")
	forbidden = apierrors.NewForbidden(pods, "", errors.New("no"))
	noLeader  = apierrors.NewInternalError(errors.New("etcdserver: no leader"))
)

func tooLarge() *apierrors.StatusError {
	err := apierrors.NewTimeoutError("Too large resource version: 9, current: 3", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	return err
}

// opens are answers to the first requests for a watch.
type opens []func(metav1.ListOptions) (watch.Interface, error)

// Each round begins with a list at 5; then the watch ends as the row has it. want lists the requests of the first 5 s.
func TestHowAWatchEndsDecidesWhatIsAskedNext(t *testing.T) {
	const opening = "0s list rv=0 limit=500\n0s watch rv=5\n"
	const relist = "800ms list rv=5 limit=0\n800ms watch rv=5"
	for _, row := range []struct {
		name           string
		watches        opens
		patience       time.Duration // with a 500
		want           string
		handled, waits int // calls of the WatchErrorHandler; steps of the backoff
	}{
		{"open refused: wait, same version, no list", opens{refusing(refused)}, 0, "800ms watch rv=5", 0, 1},
		{"open refused three times: each wait doubles", opens{refusing(refused), refusing(refused), refusing(refused)},
			0, "800ms watch rv=5\n2.4s watch rv=5", 0, 3},
		{"open 429: wait, same version, no list", opens{refusing(busy)}, 0, "800ms watch rv=5", 0, 1},
		{"open 403: handler, wait, list", opens{refusing(forbidden)}, 0, relist, 1, 1},
		{"open 410: handler, wait, list at the same version", opens{refusing(expired)}, 0, relist, 1, 1},
		{"open 500: handler, wait, list", opens{refusing(noLeader)}, 0, relist, 1, 1},
		{"open 504 too large: handler, wait, list at the same version", opens{refusing(tooLarge())}, 0, relist, 1, 1},
		{"closed at once after an event: watch again at once, from that event",
			opens{played(0, event(watch.Added, pod("a", "6")))}, 0, "0s watch rv=6", 0, 0},
		{"the end of a first state, in a plain watch: a bookmark", opens{played(time.Second, endOfInitialEvents("7"))},
			0, "1s watch rv=7", 0, 0},
		{"closed after a second without an event: watch again at once", opens{played(time.Second)}, 0,
			"1s watch rv=5", 0, 0},
		{"very short watch, closed within a second without an event: wait, list",
			opens{played(999 * time.Millisecond)}, 0, "1.799s list rv=5 limit=0\n1.799s watch rv=5", 0, 1},
		{"ERROR 410: wait, list at the last version seen", opens{played(time.Hour, event(watch.Added, pod("a", "6")),
			errorEvent(expired))}, 0, "800ms list rv=6 limit=0\n800ms watch rv=5", 0, 1}, // the second list's version
		{"ERROR 429: wait, same version, no list", opens{played(time.Hour, errorEvent(busy))}, 0,
			"800ms watch rv=5", 0, 1},
		{"ERROR 500: wait, list", opens{played(time.Hour, errorEvent(noLeader))}, 0, relist, 0, 1},
		{"ERROR 500 with patience, after an event: watch again at once",
			opens{played(time.Hour, event(watch.Added, pod("a", "6")), errorEvent(noLeader))}, 30 * time.Second,
			"0s watch rv=6", 0, 0},
		{"ERROR 500 with patience, and nothing else: watch again when a second is over",
			opens{played(time.Hour, errorEvent(noLeader)), played(time.Hour, errorEvent(noLeader))}, 30 * time.Second,
			"1s watch rv=5\n2s watch rv=5", 0, 0},
		{"ERROR 504 too large: wait, list", opens{played(time.Hour, errorEvent(tooLarge()))}, 0, relist, 0, 1},
		{"ERROR 403: wait, list", opens{played(time.Hour, errorEvent(forbidden))}, 0, relist, 0, 1},
		{"ERROR with something that is no Status: wait, list",
			opens{played(time.Hour, event(watch.Error, pod("a", "6")))}, 0, relist, 0, 1},
	} {
		bubble.Run(t, row.name, func(t *testing.T) {
			handled := 0
			s, store := newServer(), &record{}
			s.onList(listing(podList("5")), listing(podList("5")))
			s.onWatch(row.watches...)
			r := newTestReflector(s, store, func(c *Config) {
				c.WatchErrorHandler = func(context.Context, *Reflector, error) { handled++ }
				c.Probe = probetest.Probe(t, "informer")
				c.MaxInternalErrorRetryDuration = row.patience
			})
			waits := countWaits(r)
			stop := running(t, r)
			time.Sleep(5 * time.Second)
			stop()
			got, ok := strings.CutPrefix(s.log(), opening)
			require.True(t, ok, "asked first:\n%s", got)
			assert.NoDiff(t, row.want, got, "asked after the opening")
			assert.Equal(t, row.handled, handled, "the handler was called")
			assert.Equal(t, row.waits, *waits, "the reflector waited")
			for i, w := range s.opened {
				assert.False(t, w != nil && !w.isStopped(), "watch %d was not stopped", i)
			}
		})
	}
}

// countWaits counts the steps of the backoff, each of which asks for jitter once.
func countWaits(r *Reflector) *int {
	n := 0
	r.backoff.jitter = func() float64 { n++; return 0 }
	return &n
}

func TestStoreThatRefusesAStreamedStateEndsTheStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &refusingStore{failures: 2} // of the stream, and of the list that follows it
		r := newTestReflector(s, store, streaming)
		s.onWatch(played(time.Hour, endOfInitialEvents("5")))
		stop := running(t, r)
		defer stop()
		assert.True(t, s.last().isStopped(), "the stream is still open")
		assert.NoDiff(t, "0s watchlist rv=\n0s list rv=0 limit=500", s.log(), "asked")
	})
}

func TestListAndWatchGivesNilWhenTold(t *testing.T) {
	for _, useWatchList := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			canceling := func(metav1.ListOptions) (watch.Interface, error) { cancel(); return nil, ctx.Err() }
			s := newServer()
			s.onWatch(canceling)
			r := newTestReflector(s, &record{}, func(c *Config) { c.UseWatchList = useWatchList })
			assert.Equal(t, nil, r.ListAndWatch(ctx), "ended while a watch was being opened")
			s.onList(failing(ctx.Err()))
			assert.Equal(t, nil, r.ListAndWatch(ctx), "ended while a list was being read")
		})
	}
}

func TestCancelBetweenStateAndWatchLeavesNothingOpen(t *testing.T) {
	for _, useWatchList := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := newServer()
			if useWatchList {
				s.onWatch(played(time.Hour, endOfInitialEvents("5")))
			}
			r := newTestReflector(s, &cancelingStore{cancel: cancel}, func(c *Config) { c.UseWatchList = useWatchList })
			assert.Equal(t, nil, r.ListAndWatch(ctx))
			for _, w := range s.opened {
				assert.True(t, w.isStopped(), "a watch was not stopped")
			}
		})
	}
}

type cancelingStore struct {
	record
	cancel context.CancelFunc
}

func (s *cancelingStore) Replace([]any, string) error { s.cancel(); return nil }

type refusingStore struct {
	record
	failures int
}

func (s *refusingStore) Replace(list []any, rv string) error {
	if s.failures > 0 {
		s.failures--
		return errors.New("full")
	}
	return s.record.Replace(list, rv)
}

// A server that accepts every watch and fails it in the same moment is asked once a second, not as fast as it answers;
// and after half a minute it is asked for a list.
func TestAServerThatFailsEveryWatchAtOnceIsAskedOnceASecond(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer()
		s.onList(listing(podList("5")))
		for range 40 {
			s.onWatch(played(time.Hour, errorEvent(noLeader)))
		}
		r := newTestReflector(s, &record{}, func(c *Config) { c.MaxInternalErrorRetryDuration = 30 * time.Second })
		stop := running(t, r)
		time.Sleep(32 * time.Second)
		stop()
		want := "0s list rv=0 limit=500"
		for second := range 32 {
			want += fmt.Sprintf("\n%ds watch rv=5", second)
		}
		want += "\n31.8s list rv=5 limit=0\n31.8s watch rv=1"
		assert.NoDiff(t, want, s.log(), "asked")
	})
}

func TestEventsThatAreNotUnderstoodChangeNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &curious{}
		r := newTestReflector(s, store, nil)
		stop := running(t, r)
		defer stop()
		store.log()
		w := s.last()
		w.send(watch.Added, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7"}})
		w.send("FROBNICATED", pod("a", "8"))
		w.send(watch.Modified, &metav1.Table{ListMeta: metav1.ListMeta{ResourceVersion: "9"}})
		synctest.Wait()
		assert.NoDiff(t, "", store.log(), "store")
		assert.Equal(t, "1", r.LastSyncResourceVersion(), "LastSyncResourceVersion")
	})
}

var notSupported = apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)

// Which resource version is asked for, and with which page size. Each row ends its watches with ERROR 410, so that
// a round follows a round, 0.8 s, 1.6 s, … apart.
func TestVersionsAskedFor(t *testing.T) {
	again := errorEvent(expired)
	const first = "0s list rv=0 limit=500\n0s watch rv=5\n800ms list rv=5 limit=0\n"
	ended := func(events ...watch.Event) func(metav1.ListOptions) (watch.Interface, error) {
		return played(time.Hour, append(events, again)...)
	}
	rows := []struct {
		name    string
		arrange func(*server)
		change  func(*Config)
		want    string
	}{
		{"first list 0 in pages, later the last seen in one", func(s *server) {
			s.onList(listing(podList("5")), listing(podList("8")))
			s.onWatch(ended(event(watch.Added, pod("a", "6"))))
		}, nil, "0s list rv=0 limit=500\n0s watch rv=5\n800ms list rv=6 limit=0\n800ms watch rv=8"},
		{"410 on a list: at once the newest; then the last seen again", func(s *server) {
			s.onList(listing(podList("5")), failing(expired), listing(podList("9")), listing(podList("9")))
			s.onWatch(ended(), ended())
		}, nil, // the retry keeps the page size that was chosen for the version given up
			first + "800ms list rv= limit=0\n800ms watch rv=9\n2.4s list rv=9 limit=0\n2.4s watch rv=9"},
		{"too large on a list: at once the newest", func(s *server) {
			s.onList(listing(podList("5")), failing(tooLarge()), listing(podList("3")))
			s.onWatch(ended())
		}, nil, first + "800ms list rv= limit=0\n800ms watch rv=3"},
		{"the newest fails too: the newest again after a wait", func(s *server) {
			s.onList(listing(podList("5")), failing(expired), failing(refused))
			s.onWatch(ended())
		}, nil, first + "800ms list rv= limit=0\n2.4s list rv= limit=500\n2.4s watch rv=1"},
		{"pages although 0 was asked: no cache, so pages for ever", func(s *server) {
			s.onList(listing(page(podList("5"), "x")), listing(podList("5")))
			s.onWatch(ended())
		}, nil, "0s list rv=0 limit=500\n0s list rv= limit=500 continue=x\n0s watch rv=5\n800ms list rv=5 " +
			"limit=500\n800ms watch rv=1"},
		{"pages of the newest say nothing about a cache", func(s *server) {
			s.onList(listing(podList("5")), failing(expired), listing(page(podList("6"), "x")),
				listing(podList("6")), listing(podList("6")))
			s.onWatch(ended(), ended())
		}, nil, first + "800ms list rv= limit=0\n800ms list rv= limit=0 continue=x\n800ms watch rv=6\n" +
			"2.4s list rv=6 limit=0\n2.4s watch rv=6"},
		{"an explicit page size holds for every list", func(s *server) { s.onWatch(ended()) },
			func(c *Config) { c.WatchListPageSize = 10000 },
			"0s list rv=0 limit=10000\n0s watch rv=1\n800ms list rv=1 limit=10000\n800ms watch rv=1"},
		{"first stream the newest, later the last seen", func(s *server) {
			s.onWatch(ended(endOfInitialEvents("5"), event(watch.Added, pod("a", "6"))))
		}, streaming, "0s watchlist rv=\n800ms watchlist rv=6"},
		{"410 as a stream is opened: at once the newest", func(s *server) {
			s.onWatch(ended(endOfInitialEvents("5")), refusing(expired))
		}, streaming, "0s watchlist rv=\n800ms watchlist rv=5\n800ms watchlist rv="},
		{"410 on a stream, then the newest: later the last seen again", func(s *server) {
			s.onWatch(ended(endOfInitialEvents("5")), refusing(expired), ended(endOfInitialEvents("9")))
		}, streaming, "0s watchlist rv=\n800ms watchlist rv=5\n800ms watchlist rv=\n2.4s watchlist rv=9"},
		{"too large within a stream: at once the newest", func(s *server) {
			s.onWatch(ended(endOfInitialEvents("5")), played(time.Hour, errorEvent(tooLarge())))
		}, streaming, "0s watchlist rv=\n800ms watchlist rv=5\n800ms watchlist rv="},
		{"no streams: a list for this round, a stream in the next", func(s *server) {
			s.onWatch(refusing(notSupported), ended())
		}, streaming, "0s watchlist rv=\n0s list rv=0 limit=500\n0s watch rv=1\n800ms watchlist rv=1"},
		{"stream refused or 429: wait, the same again", func(s *server) {
			s.onWatch(refusing(refused), played(time.Hour, errorEvent(busy)))
		}, streaming, "0s watchlist rv=\n800ms watchlist rv=\n2.4s watchlist rv="},
		{"stream closed too early: the same again at once", func(s *server) {
			s.onWatch(played(0, event(watch.Added, pod("a", "6"))))
		}, streaming, "0s watchlist rv=\n0s watchlist rv="},
		{"stream closed at once and silently: a list", func(s *server) { s.onWatch(played(0)) }, streaming,
			"0s watchlist rv=\n0s list rv=0 limit=500\n0s watch rv=1"},
	}
	for _, row := range rows {
		bubble.Run(t, row.name, func(t *testing.T) {
			s := newServer()
			row.arrange(s)
			stop := running(t, newTestReflector(s, &record{}, row.change))
			time.Sleep(4 * time.Second)
			stop()
			assert.NoDiff(t, row.want, s.log(), "asked")
		})
	}
}

func streaming(c *Config) { c.UseWatchList = true }

func TestVersionsOfInitialEventsAreNotRemembered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &curious{}
		s.onList(listing(podList("")))
		r := newTestReflector(s, store, nil)
		stop := running(t, r)
		defer stop()
		w := s.last() // began from "", so it begins with the state, in key order
		w.send(watch.Added, pod("a", "9"))
		w.send(watch.Added, pod("b", "4"))
		synctest.Wait()
		assert.Equal(t, "", r.LastSyncResourceVersion(), "after ADDED only")
		w.send(watch.Modified, pod("b", "10"))
		w.send(watch.Added, pod("c", "11"))
		synctest.Wait()
		assert.Equal(t, "11", r.LastSyncResourceVersion(), "after MODIFIED")
		assert.NoDiff(t, "replace [] at ; add a@9; add b@4; update b@10; rv 10; add c@11; rv 11", store.log(), "store")
	})
}

func TestWatchTimeoutIsBetweenFiveAndTenMinutes(t *testing.T) {
	for jitter, want := range map[float64]int64{0: 300, 0.5: 450, 0.9999: 599} {
		r := newTestReflector(nil, nil, func(c *Config) { c.Jitter = func() float64 { return jitter } })
		assert.Equal(t, want, *r.watchTimeoutSeconds(), "jitter %v", jitter)
	}
}

func TestTransformIsAppliedToStreamedState(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &transforming{}
		s.onWatch(played(time.Hour, event(watch.Added, pod("a", "3")), event(watch.Added, pod("bad", "4")),
			endOfInitialEvents("7"), event(watch.Added, pod("b", "8"))))
		r := newTestReflector(s, store, streaming)
		stop := running(t, r)
		defer stop()
		// Later events are the store's own affair.
		assert.NoDiff(t, "replace [A@3] at 7; add b@8", store.log(), "store")
	})
}

type transforming struct{ record }

func (s *transforming) Transformer() TransformFunc {
	return func(obj any) (any, error) {
		if name(obj) == "bad@4" {
			return nil, errors.New("bad")
		}
		return pod("A", "3"), nil
	}
}

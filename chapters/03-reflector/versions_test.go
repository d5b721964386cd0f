package reflector

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
)

var notSupported = apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)

// Which resource version is asked for, and with which page size. Each row ends its watches with ERROR 410, so that
// a round follows a round, 0.8 s, 1.6 s, … apart.
func TestVersionsAskedFor(t *testing.T) {
	again := errorEvent(expired)
	rows := []struct {
		name    string
		arrange func(*server)
		change  func(*Config)
		want    string
	}{
		{
			name: "first list 0 in pages, later the last seen in one",
			arrange: func(s *server) {
				s.onList(listing(podList("5")), listing(podList("8")))
				s.onWatch(played(time.Hour, event(watch.Added, pod("a", "6")), again))
			},
			want: "0s list rv=0 limit=500\n0s watch rv=5\n800ms list rv=6 limit=0\n800ms watch rv=8",
		}, {
			name: "410 on a list: at once the newest; then the last seen again",
			arrange: func(s *server) {
				s.onList(listing(podList("5")), failing(expired), listing(podList("9")), listing(podList("9")))
				s.onWatch(played(time.Hour, again), played(time.Hour, again))
			},
			// The retry keeps the page size that was chosen for the version given up.
			want: "0s list rv=0 limit=500\n0s watch rv=5\n800ms list rv=5 limit=0\n800ms list rv= limit=0\n" +
				"800ms watch rv=9\n2.4s list rv=9 limit=0\n2.4s watch rv=9",
		}, {
			name: "too large on a list: at once the newest",
			arrange: func(s *server) {
				s.onList(listing(podList("5")), failing(tooLarge()), listing(podList("3")))
				s.onWatch(played(time.Hour, again))
			},
			want: "0s list rv=0 limit=500\n0s watch rv=5\n800ms list rv=5 limit=0\n800ms list rv= limit=0\n" +
				"800ms watch rv=3",
		}, {
			name: "the newest fails too: the newest again after a wait",
			arrange: func(s *server) {
				s.onList(listing(podList("5")), failing(expired), failing(refused))
				s.onWatch(played(time.Hour, again))
			},
			want: "0s list rv=0 limit=500\n0s watch rv=5\n800ms list rv=5 limit=0\n800ms list rv= limit=0\n" +
				"2.4s list rv= limit=500\n2.4s watch rv=1",
		}, {
			name: "pages although 0 was asked: no cache, so pages for ever",
			arrange: func(s *server) {
				s.onList(listing(page(podList("5"), "x")), listing(podList("5")))
				s.onWatch(played(time.Hour, again))
			},
			want: "0s list rv=0 limit=500\n0s list rv= limit=500 continue=x\n0s watch rv=5\n800ms list rv=5 " +
				"limit=500\n800ms watch rv=1",
		}, {
			name: "pages of the newest say nothing about a cache",
			arrange: func(s *server) {
				s.onList(listing(podList("5")), failing(expired), listing(page(podList("6"), "x")),
					listing(podList("6")), listing(podList("6")))
				s.onWatch(played(time.Hour, again), played(time.Hour, again))
			},
			want: "0s list rv=0 limit=500\n0s watch rv=5\n800ms list rv=5 limit=0\n800ms list rv= limit=0\n" +
				"800ms list rv= limit=0 continue=x\n800ms watch rv=6\n2.4s list rv=6 limit=0\n2.4s watch rv=6",
		}, {
			name:    "an explicit page size holds for every list",
			arrange: func(s *server) { s.onWatch(played(time.Hour, again)) },
			change:  func(c *Config) { c.WatchListPageSize = 10000 },
			want:    "0s list rv=0 limit=10000\n0s watch rv=1\n800ms list rv=1 limit=10000\n800ms watch rv=1",
		}, {
			name: "first stream the newest, later the last seen",
			arrange: func(s *server) {
				s.onWatch(played(time.Hour, endOfInitialEvents("5"), event(watch.Added, pod("a", "6")), again))
			},
			change: streaming,
			want:   "0s watchlist rv=\n800ms watchlist rv=6",
		}, {
			name: "410 as a stream is opened: at once the newest",
			arrange: func(s *server) {
				s.onWatch(played(time.Hour, endOfInitialEvents("5"), again), refusing(expired))
			},
			change: streaming,
			want:   "0s watchlist rv=\n800ms watchlist rv=5\n800ms watchlist rv=",
		}, {
			name: "410 on a stream, then the newest: later the last seen again",
			arrange: func(s *server) {
				s.onWatch(played(time.Hour, endOfInitialEvents("5"), again), refusing(expired), played(time.Hour,
					endOfInitialEvents("9"), again))
			},
			change: streaming,
			want:   "0s watchlist rv=\n800ms watchlist rv=5\n800ms watchlist rv=\n2.4s watchlist rv=9",
		}, {
			name: "too large within a stream: at once the newest",
			arrange: func(s *server) {
				s.onWatch(played(time.Hour, endOfInitialEvents("5"), again), played(time.Hour, errorEvent(tooLarge())))
			},
			change: streaming,
			want:   "0s watchlist rv=\n800ms watchlist rv=5\n800ms watchlist rv=",
		}, {
			name:    "no streams: a list for this round, a stream in the next",
			arrange: func(s *server) { s.onWatch(refusing(notSupported), played(time.Hour, again)) },
			change:  streaming,
			want:    "0s watchlist rv=\n0s list rv=0 limit=500\n0s watch rv=1\n800ms watchlist rv=1",
		}, {
			name:    "stream refused or 429: wait, the same again",
			arrange: func(s *server) { s.onWatch(refusing(refused), played(time.Hour, errorEvent(busy))) },
			change:  streaming,
			want:    "0s watchlist rv=\n800ms watchlist rv=\n2.4s watchlist rv=",
		}, {
			name: "stream closed too early: the same again at once",
			arrange: func(s *server) {
				s.onWatch(played(0, event(watch.Added, pod("a", "6"))))
			},
			change: streaming,
			want:   "0s watchlist rv=\n0s watchlist rv=",
		}, {
			name:    "stream closed at once and silently: a list",
			arrange: func(s *server) { s.onWatch(played(0)) },
			change:  streaming,
			want:    "0s watchlist rv=\n0s list rv=0 limit=500\n0s watch rv=1",
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newServer()
				row.arrange(s)
				stop := running(t, newTestReflector(s, &record{}, row.change))
				time.Sleep(4 * time.Second)
				stop()
				wantLog(t, "asked", s.log(), row.want)
			})
		})
	}
}

func streaming(c *Config) { c.UseWatchList = true }

func TestChangesWithinTheInitialEventsAreApplied(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &record{}
		s.onWatch(played(time.Hour,
			event(watch.Added, pod("a", "3")), event(watch.Added, pod("b", "4")), event(watch.Added, pod("c", "2")),
			event(watch.Deleted, pod("b", "5")), event(watch.Modified, pod("c", "6")), event(watch.Added,
				pod("b", "7")),
			endOfInitialEvents("7"),
		))
		stop := running(t, newTestReflector(s, store, streaming))
		defer stop()
		wantLog(t, "store", store.log(), "replace [a@3 c@6 b@7] at 7")
	})
}

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
		assert.Equal(t, r.LastSyncResourceVersion(), "", "after ADDED only")
		w.send(watch.Modified, pod("b", "10"))
		w.send(watch.Added, pod("c", "11"))
		synctest.Wait()
		assert.Equal(t, r.LastSyncResourceVersion(), "11", "after MODIFIED")
		wantLog(t, "store", store.log(), "replace [] at ; add a@9; add b@4; update b@10; rv 10; add c@11; rv 11")
	})
}

func TestWatchTimeoutIsBetweenFiveAndTenMinutes(t *testing.T) {
	for jitter, want := range map[float64]int64{0: 300, 0.5: 450, 0.9999: 599} {
		r := newTestReflector(nil, nil, func(c *Config) { c.Jitter = func() float64 { return jitter } })
		assert.Equal(t, *r.watchTimeoutSeconds(), want, "jitter %v", jitter)
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
		wantLog(t, "store", store.log(), "replace [A@3] at 7; add b@8")
		got := r.Snapshot().StoreErrors
		assert.Equal(t, got, 1, "got %d store errors, want 1: the object that could not be transformed", got)
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

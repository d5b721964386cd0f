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
			wantLog(t, "asked", s.log(), row.want)
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
		wantLog(t, "store", store.log(), "replace [a@3 b@7 c@6] at 7")
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
		assert.Equal(t, "", r.LastSyncResourceVersion(), "after ADDED only")
		w.send(watch.Modified, pod("b", "10"))
		w.send(watch.Added, pod("c", "11"))
		synctest.Wait()
		assert.Equal(t, "11", r.LastSyncResourceVersion(), "after MODIFIED")
		wantLog(t, "store", store.log(), "replace [] at ; add a@9; add b@4; update b@10; rv 10; add c@11; rv 11")
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
		wantLog(t, "store", store.log(), "replace [A@3] at 7; add b@8")
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

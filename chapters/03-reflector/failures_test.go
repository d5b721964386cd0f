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

// Every round begins with a list at 5; the first watch ends as the row says. want is what is asked of the server
// within the first 5 s.
func TestHowAWatchEndsDecidesWhatIsAskedNext(t *testing.T) {
	const opening = "0s list rv=0 limit=500\n0s watch rv=5\n"
	rows := []struct {
		name        string
		watches     []func(metav1.ListOptions) (watch.Interface, error)
		change      func(*Config)
		want        string
		wantHandled int // calls of the WatchErrorHandler
		wantWaits   int // steps of the backoff
	}{
		{
			name:      "open refused: wait, same version, no list",
			watches:   watches(refusing(refused)),
			want:      "800ms watch rv=5",
			wantWaits: 1,
		}, {
			name:      "open refused three times: each wait doubles",
			watches:   watches(refusing(refused), refusing(refused), refusing(refused)),
			want:      "800ms watch rv=5\n2.4s watch rv=5",
			wantWaits: 3,
		}, {
			name:      "open 429: wait, same version, no list",
			watches:   watches(refusing(busy)),
			want:      "800ms watch rv=5",
			wantWaits: 1,
		}, {
			name:        "open 403: handler, wait, list",
			watches:     watches(refusing(forbidden)),
			want:        "800ms list rv=5 limit=0\n800ms watch rv=5",
			wantHandled: 1,
			wantWaits:   1,
		}, {
			name:        "open 410: handler, wait, list at the same version",
			watches:     watches(refusing(expired)),
			want:        "800ms list rv=5 limit=0\n800ms watch rv=5",
			wantHandled: 1,
			wantWaits:   1,
		}, {
			name:        "open 500: handler, wait, list",
			watches:     watches(refusing(noLeader)),
			want:        "800ms list rv=5 limit=0\n800ms watch rv=5",
			wantHandled: 1,
			wantWaits:   1,
		}, {
			name:        "open 504 too large: handler, wait, list at the same version",
			watches:     watches(refusing(tooLarge())),
			want:        "800ms list rv=5 limit=0\n800ms watch rv=5",
			wantHandled: 1,
			wantWaits:   1,
		}, {
			name:    "closed at once after an event: watch again at once, from that event",
			watches: watches(played(0, event(watch.Added, pod("a", "6")))),
			want:    "0s watch rv=6",
		}, {
			name:    "the end of a first state, in a plain watch: a bookmark",
			watches: watches(played(time.Second, endOfInitialEvents("7"))),
			want:    "1s watch rv=7",
		}, {
			name:    "closed after a second without an event: watch again at once",
			watches: watches(played(time.Second)),
			want:    "1s watch rv=5",
		}, {
			name:      "very short watch, closed within a second without an event: wait, list",
			watches:   watches(played(999 * time.Millisecond)),
			want:      "1.799s list rv=5 limit=0\n1.799s watch rv=5",
			wantWaits: 1,
		}, {
			name:      "ERROR 410: wait, list at the last version seen",
			watches:   watches(played(time.Hour, event(watch.Added, pod("a", "6")), errorEvent(expired))),
			want:      "800ms list rv=6 limit=0\n800ms watch rv=5", // what the second list says
			wantWaits: 1,
		}, {
			name:      "ERROR 429: wait, same version, no list",
			watches:   watches(played(time.Hour, errorEvent(busy))),
			want:      "800ms watch rv=5",
			wantWaits: 1,
		}, {
			name:      "ERROR 500: wait, list",
			watches:   watches(played(time.Hour, errorEvent(noLeader))),
			want:      "800ms list rv=5 limit=0\n800ms watch rv=5",
			wantWaits: 1,
		}, {
			name:    "ERROR 500 with patience, after an event: watch again at once",
			watches: watches(played(time.Hour, event(watch.Added, pod("a", "6")), errorEvent(noLeader))),
			change:  func(c *Config) { c.MaxInternalErrorRetryDuration = 30 * time.Second },
			want:    "0s watch rv=6",
		}, {
			name:    "ERROR 500 with patience, and nothing else: watch again when a second is over",
			watches: watches(played(time.Hour, errorEvent(noLeader)), played(time.Hour, errorEvent(noLeader))),
			change:  func(c *Config) { c.MaxInternalErrorRetryDuration = 30 * time.Second },
			want:    "1s watch rv=5\n2s watch rv=5",
		}, {
			name:      "ERROR 504 too large: wait, list",
			watches:   watches(played(time.Hour, errorEvent(tooLarge()))),
			want:      "800ms list rv=5 limit=0\n800ms watch rv=5",
			wantWaits: 1,
		}, {
			name:      "ERROR 403: wait, list",
			watches:   watches(played(time.Hour, errorEvent(forbidden))),
			want:      "800ms list rv=5 limit=0\n800ms watch rv=5",
			wantWaits: 1,
		}, {
			name:      "ERROR with something that is no Status: wait, list",
			watches:   watches(played(time.Hour, event(watch.Error, pod("a", "6")))),
			want:      "800ms list rv=5 limit=0\n800ms watch rv=5",
			wantWaits: 1,
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				handled := 0
				s, store := newServer(), &record{}
				s.onList(listing(podList("5")), listing(podList("5")))
				s.onWatch(row.watches...)
				r := newTestReflector(s, store, func(c *Config) {
					c.WatchErrorHandler = func(context.Context, *Reflector, error) { handled++ }
					c.Probe = probetest.Probe(t, "informer")
					if row.change != nil {
						row.change(c)
					}
				})
				waits := countWaits(r)
				stop := running(t, r)
				time.Sleep(5 * time.Second)
				stop()
				got, ok := strings.CutPrefix(s.log(), opening)
				require.True(t, ok, "asked first:\n%s", got)
				wantLog(t, "asked after the opening", got, row.want)
				assert.Equal(t, handled, row.wantHandled, "handler called %d times, want %d", handled, row.wantHandled)
				assert.True(t, *waits == row.wantWaits, "waited %d times, want %d", *waits, row.wantWaits)
				for i, w := range s.opened {
					assert.False(t, w != nil && !w.isStopped(), "watch %d was not stopped", i)
				}
			})
		})
	}
}

func watches(f ...func(metav1.ListOptions) (watch.Interface, error)) []func(metav1.ListOptions) (watch.Interface,
	error) {
	return f
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
		assert.True(t, s.last().isStopped() && !r.Snapshot().Watching, "the stream is still open")
		wantLog(t, "asked", s.log(), "0s watchlist rv=\n0s list rv=0 limit=500")
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
			assert.Equal(t, r.ListAndWatch(ctx), nil, "ended while a watch was being opened")
			s.onList(failing(ctx.Err()))
			assert.Equal(t, r.ListAndWatch(ctx), nil, "ended while a list was being read")
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
			assert.Equal(t, r.ListAndWatch(ctx), nil)
			for _, w := range s.opened {
				assert.True(t, w.isStopped(), "a watch was not stopped")
			}
			assert.False(t, r.Snapshot().Watching, "got watching, want not")
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
		wantLog(t, "asked", s.log(), want)
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
		wantLog(t, "store", store.log(), "")
		assert.Equal(t, r.LastSyncResourceVersion(), "1", "LastSyncResourceVersion")
		if got := r.Snapshot(); got.Skipped != 3 || got.Events != 0 {
			t.Errorf("got %d skipped and %d carried, want 3 and 0", got.Skipped, got.Events)
		}
	})
}

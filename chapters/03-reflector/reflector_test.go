package reflector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/chapterdrawing"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// running starts the reflector, waits until it is at rest, and returns a function that stops it and waits for its end.
func running(t *testing.T, r *Reflector) (stop func()) {
	t.Helper()
	stop = bubble.Go(t, "reflector.Run", r.Run)
	synctest.Wait()
	return stop
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sentences(records []probe.Record) (told string) {
	for _, r := range records {
		told += r.Sentence() + "\n"
	}
	return told
}

func TestProbesTellTheStoryOfTwoRounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 0)
		s := newServer()
		s.onList(listing(podList("5", pod("a", "3"))))
		s.onWatch(
			refusing(notSupported),
			played(time.Hour, event(watch.Modified, pod("a", "6")), bookmark("8"), errorEvent(expired)),
			played(time.Hour, event(watch.Added, pod("a", "6")), endOfInitialEvents("9"), event(watch.Deleted,
				pod("a", "10"))),
		)
		r := newTestReflector(s, &record{}, func(c *Config) {
			c.UseWatchList = true
			c.Probe = probe.New(log).Resource("pods").Subject("cacher")
			c.KeyOf = func(obj any) (string, error) { return "/registry/pods/default/" + obj.(*corev1.Pod).Name, nil }
		})
		stop := running(t, r)
		time.Sleep(time.Second)
		stop()
		records := probetest.Records(log)
		assert.NoDiff(t, `cacher has listed 1 object at 5.
cacher watches changes after 5.
cacher receives MODIFIED default/a at 6.
cacher receives BOOKMARK at 8.
cacher receives ERROR.
The watch of cacher ended: too old resource version: 5 (9).
cacher waits 800 ms before trying again: too old resource version: 5 (9).
cacher watches a state not older than 8 and its changes.
cacher receives ADDED default/a at 6.
cacher receives BOOKMARK at 9.
cacher has received the whole state at 9: 1 object.
cacher receives DELETED default/a at 10.
The watch of cacher ended: stop requested.
`, sentences(records), "told")
		assert.Equal(t, "/registry/pods/default/a", records[2].Key, "key")
	})
}

// Whatever the store refuses is counted and reported, and does not keep the reflector from what comes after it.
func TestWhatTheStoreRefusesIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 0)
		s, store := newServer(), &record{refuses: errors.New("no attributes")}
		s.onList(listing(podList("5")))
		s.onWatch(played(time.Hour, event(watch.Added, pod("x", "6")), event(watch.Modified, pod("x", "7")),
			event(watch.Deleted, pod("x", "8")), event(watch.Added, pod("a", "9"))))
		r := newTestReflector(s, store, func(c *Config) { c.Probe = probe.New(log).Resource("pods").Subject("cacher") })
		stop := running(t, r)
		time.Sleep(time.Second)
		stop()
		refused := probetest.Records(log, probe.ReflectorStoreFailed)
		for _, each := range refused {
			assert.True(t, each.Anomaly(), "no anomaly")
		}
		assert.NoDiff(t, `The store of cacher refuses default/x at 6, and misses it from now on: no attributes.
The store of cacher refuses default/x at 7, and misses it from now on: no attributes.
The store of cacher refuses default/x at 8, and misses it from now on: no attributes.
`, sentences(refused), "told")
		assert.Equal(t, 3, r.Snapshot().StoreErrors)
		assert.Equal(t, "9", r.LastSyncResourceVersion())
	})
}

// pages answers requests one after the other and writes down what it is asked.
type pages struct {
	asked   []string
	answers []any // *corev1.PodList or error
}

func (p *pages) list(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	p.asked = append(p.asked, fmt.Sprintf("rv=%s match=%s limit=%d continue=%s", options.ResourceVersion,
		options.ResourceVersionMatch, options.Limit, options.Continue))
	answer := p.answers[0]
	p.answers = p.answers[1:]
	if err, ok := answer.(error); ok {
		return nil, err
	}
	return answer.(runtime.Object), nil
}

func TestPager(t *testing.T) {
	first := page(podList("5", pod("a", "1"), pod("b", "2")), "x")
	second := page(podList("5", pod("c", "3")), "y")
	last := podList("5", pod("d", "4"))
	exact := metav1.ListOptions{ResourceVersion: "4", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	rows := []struct {
		name    string
		size    int64
		options metav1.ListOptions
		answers []any
		asked   []string
		want    string
	}{
		{"one page", 2, exact, []any{last}, []string{"rv=4 match=Exact limit=2 continue="}, "[d] at 5 paginated=false"},
		{
			"the version is sent with the first page only", 2, exact, []any{first, second, last},
			[]string{"rv=4 match=Exact limit=2 continue=", "rv= match= limit=2 continue=x",
				"rv= match= limit=2 continue=y"},
			"[a b c d] at 5 paginated=true",
		},
		{
			"an explicit limit wins", 2, metav1.ListOptions{Limit: 7}, []any{last},
			[]string{"rv= match= limit=7 continue="}, "[d] at 5 paginated=false",
		},
		{
			"expired on the second page: everything at once, as asked at first", 2, exact, []any{first, expired,
				podList("9", pod("a", "1"))},
			[]string{"rv=4 match=Exact limit=2 continue=", "rv= match= limit=2 continue=x",
				"rv=4 match=Exact limit=0 continue="},
			"[a] at 9 paginated=true",
		},
		{
			"expired on the first page is an error", 2, exact, []any{expired},
			[]string{"rv=4 match=Exact limit=2 continue="}, "error Expired",
		},
		{
			"any other error on a later page is an error", 2, exact, []any{first, busy},
			[]string{"rv=4 match=Exact limit=2 continue=", "rv= match= limit=2 continue=x"}, "error TooManyRequests",
		},
		{
			"an object is not a list", 2, metav1.ListOptions{}, []any{pod("a", "1")},
			[]string{"rv= match= limit=2 continue="}, "error ",
		},
		{
			"a table is not a list of objects", 2, metav1.ListOptions{}, []any{&metav1.Table{}},
			[]string{"rv= match= limit=2 continue="}, "error ",
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := &pages{answers: row.answers}
			pager := ListPager{PageSize: row.size, PageFn: p.list}
			got := ""
			list, err := pager.List(t.Context(), row.options)
			if err != nil {
				got = "error " + string(apierrors.ReasonForError(err))
			} else {
				names := []string{}
				for _, item := range list.Items {
					names = append(names, item.(*corev1.Pod).Name)
				}
				got = fmt.Sprintf("%v at %s paginated=%v", names, list.ResourceVersion, list.Paginated)
			}
			assert.Equal(t, row.want, got)
			assert.Equal(t, fmt.Sprint(row.asked), fmt.Sprint(p.asked), "asked\n got %v\nwant %v", p.asked, row.asked)
		})
	}
}

func TestItemsDoNotKeepTheirPageAlive(t *testing.T) {
	list := podList("5", pod("a", "1"))
	joined := &PagedList{}
	require.Value(joined.append(list))(t)
	assert.True(t, joined.Items[0].(*corev1.Pod) != &list.Items[0], "the item points into the page's array")
}

func TestDelaysDoubleUpToHalfAMinute(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &backoff{clock: clock.RealClock{}, jitter: func() float64 { return 0 }}
		want := []string{"800ms", "1.6s", "3.2s", "6.4s", "12.8s", "25.6s", "30s", "30s", "30s", "30s", "30s", "30s",
			"30s"}
		for i, want := range want {
			got := b.delay()
			assert.True(t, got.String() == want,
				"delay %d after %v of outage: got %v, want %s", i, time.Since(b.until.Add(-got)), got, want)
			time.Sleep(got)
		}
	})
}

func TestJitterAtMostDoublesADelay(t *testing.T) {
	b := &backoff{clock: clock.RealClock{}, jitter: func() float64 { return 0.5 }}
	assert.Equal(t, 1200*time.Millisecond, b.delay(), "first")
	assert.Equal(t, 2400*time.Millisecond, b.delay(), "second")
}

func TestRetryForgetsAfterAMinuteWithoutErrors(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		oops := apierrors.NewInternalError(errors.New("oops"))
		r := &retryWithDeadline{maxRetryDuration: 30 * time.Second, clock: clock.RealClock{}}
		r.After(oops)
		time.Sleep(30 * time.Second)
		r.After(nil) // neither counts nor resets
		assert.True(t, r.ShouldRetry(), "30 s after the first error: got no retry, want one")
		time.Sleep(time.Nanosecond)
		assert.False(t, r.ShouldRetry(), "later than 30 s after the first error: got a retry, want none")
		r.After(oops)
		assert.True(t, r.ShouldRetry(), "having refused once, a new period: got no retry, want one")
		time.Sleep(time.Minute)
		r.After(oops)
		assert.True(t, r.ShouldRetry(), "first error in a minute: got no retry, want one")
	})
}

func TestFailedResyncEndsTheRound(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &record{resyncErr: errors.New("full")}
		r := newTestReflector(s, store, func(c *Config) { c.ResyncPeriod = time.Minute })
		stop := running(t, r)
		first := s.last()
		time.Sleep(61 * time.Second)
		assert.True(t, first.isStopped(), "the watch was not stopped")
		stop()
		want := "0s list rv=0 limit=500\n0s watch rv=1\n1m0.8s list rv=1 limit=0\n1m0.8s watch rv=1"
		assert.NoDiff(t, want, s.log(), "asked")
	})
}

func TestCancelWaitsForAResyncUnderway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, store := newServer(), &slowResync{began: make(chan struct{}), finish: make(chan struct{})}
		r := newTestReflector(s, store, func(c *Config) { c.ResyncPeriod = time.Minute })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		new(routine.Group).Go(ctx, "reflector.Run", func(ctx context.Context) { r.Run(ctx); close(done) })
		<-store.began
		cancel()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("Run ended while the store was being resynced")
		default:
		}
		close(store.finish)
		<-done
	})
}

type slowResync struct {
	record
	began, finish chan struct{}
}

func (s *slowResync) Resync() error { close(s.began); <-s.finish; return nil }

// The drawing of the rounds: each line is a request of one reflector, in a run in which each kind of end occurs.
func TestTheDrawingOfTheRoundsIsOfThisReflector(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer()
		s.onList(listing(podList("5", pod("a", "5"))), listing(podList("12", pod("a", "12"))))
		s.onWatch(
			played(2*time.Second, event(watch.Modified, pod("a", "6")), event(watch.Added, pod("b", "8"))),
			refusing(busy),
			played(3*time.Second, event(watch.Deleted, pod("b", "9")), errorEvent(expired)),
			played(time.Hour, event(watch.Modified, pod("a", "13"))),
		)
		r := newTestReflector(s, &record{}, nil)
		stop := running(t, r)
		time.Sleep(6 * time.Second)
		stop()
		got := []struct{ has, ends, then string }{
			{"the state at 5", "", ""},
			{"6, 8", "a clean end", "at once"},
			{"", "refused, 429", "wait"},
			{"9", "ERROR, 410", "wait, list"},
			{"the state at 12", "", ""},
			{"13, …", "", ""},
		}
		asked := strings.Split(s.log(), "\n")
		require.True(t, len(asked) == len(got), "asked %q", asked)
		d := chapterdrawing.New("rounds.svg", 322)
		d.Text(16, 24, "soft", "when")
		d.Text(76, 24, "soft", "the request")
		d.Text(250, 24, "soft", "what comes")
		d.Text(430, 24, "soft", "how it ends")
		for i, request := range asked {
			y := 60 + i*42
			when, what, _ := strings.Cut(request, " ")
			what, _, _ = strings.Cut(what, " limit=")
			verb, rv, _ := strings.Cut(what, " rv=")
			kind := "queue"
			if verb == "list" {
				kind = "kept"
			}
			d.Text(16, y, "soft", "%s", when)
			d.Text(76, y, "", "%s", verb)
			d.Text(136, y, "bold", "%s", map[string]string{"list": rv + " or newer", "watch": "from " + rv}[verb])
			if got[i].has != "" {
				d.In(kind, func() { d.Box(244, y-20, 14+9*len(got[i].has), 30, "wall") })
				d.Text(252, y, "", "%s", got[i].has)
			}
			d.Text(430, y, "", "%s", got[i].ends)
			d.Text(540, y, "soft", "%s", got[i].then)
		}
		d.Text(16, 312, "", "A watch begins where the last one ended. Only the 410 costs a list.")
		d.Check(t)
	})
}

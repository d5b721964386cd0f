package reflector

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

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
	_, err := joined.append(list)
	require.NoError(t, err)
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

func TestDelaysBeginAgainAfterTwoMinutesOfHealth(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &backoff{clock: clock.RealClock{}, jitter: func() float64 { return 0 }}
		time.Sleep(b.delay())
		time.Sleep(b.delay())
		time.Sleep(backoffReset - time.Nanosecond)
		assert.Equal(t, 3200*time.Millisecond, b.delay(), "a nanosecond too early")
		time.Sleep(3200*time.Millisecond + backoffReset)
		assert.Equal(t, backoffInit, b.delay(), "after two minutes")
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
		wantLog(t, "asked", s.log(),
			"0s list rv=0 limit=500\n0s watch rv=1\n1m0.8s list rv=1 limit=0\n1m0.8s watch rv=1")
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

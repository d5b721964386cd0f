package controllers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/check/assert"
	"listwatch/internal/observe/routine"
)

// line is a client's connection. While it is stalled, no request that begins is answered. A PUT arrives after half a
// minute; the others do not.
type line struct {
	*election
	stalled atomic.Bool
	lets    string // requests of this method are not stalled
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.stalled.Load() || r.Method == l.lets {
		return l.http.Transport.RoundTrip(r)
	}
	if r.Method == http.MethodPut {
		late := r.Clone(l.ctx)
		l.running.Go(l.ctx, "late", func(ctx context.Context) {
			_ = routine.Sleep(ctx, clock.RealClock{}, 30*time.Second)
			if answer, err := l.http.Transport.RoundTrip(late); err == nil {
				l.say(0, fmt.Sprint("the late write gets ", answer.StatusCode))
				_ = answer.Body.Close()
			}
		})
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// election is a cluster in which candidates stand for one lease of 15 s.
type election struct {
	*cluster
	began time.Time
	mu    sync.Mutex // guards what follows
	said  []string   // "2s a leads", in order
	now   int        // how many lead
	most  int        // how many led at once
}

func inElection(t *testing.T, body func(t *testing.T, e *election)) {
	inCluster(t, func(t *testing.T, c *cluster) { body(t, &election{cluster: c, began: time.Now()}) })
}

// say notes that the number of leaders has changed.
func (e *election) say(change int, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now += change
	e.most = max(e.most, e.now)
	e.said = append(e.said, fmt.Sprint(time.Since(e.began).Round(time.Second), " ", text))
}

// stand lets a candidate stand, and stand again when it has lost. It takes a second to stop.
func (e *election) stand(name string) *line {
	over := &line{election: e}
	elector := NewLeaderElector(LeaderElectorConfig{
		Client: listwatch.NewRESTClient(listwatch.Config{Base: &url.URL{Scheme: "http", Host: "cluster"},
			HTTP: &http.Client{Transport: over}, UserAgent: name, QPS: -1, Clock: clock.RealClock{}}),
		Namespace: "default", Name: "job", Identity: name, LeaseDuration: 15 * time.Second, Clock: clock.RealClock{},
		Lead: func(ctx context.Context) {
			e.say(1, name+" leads")
			<-ctx.Done()
			_ = routine.Sleep(context.WithoutCancel(ctx), clock.RealClock{}, time.Second)
			e.say(-1, name+" stops")
		},
	})
	e.running.Go(e.ctx, "candidate", func(ctx context.Context) {
		for ctx.Err() == nil {
			elector.Run(ctx)
		}
	})
	synctest.Wait()
	return over
}

func (e *election) lease() *coordinationv1.Lease {
	e.t.Helper()
	lease := &coordinationv1.Lease{}
	e.must(e.leases().Get().Namespace("default").Resource("leases").Name("job").Do(e.ctx).Into(lease))
	return lease
}

func (e *election) leases() *listwatch.RESTClient {
	return e.client.WithAPIPath("/apis/coordination.k8s.io/v1")
}

// expect compares what was said so far, and how many led at once.
func (e *election) expect(most int, want ...string) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	assert.EqualSlices(e.t, want, e.said)
	assert.Equal(e.t, most, e.most, "leaders at once")
}

// TestALeaderThatIsCutOffStopsBeforeTheNextBegins stalls the leader's connection. The leader finds out by itself.
func TestALeaderThatIsCutOffStopsBeforeTheNextBegins(t *testing.T) {
	// The last renewal was at 60 s, so the leader stops at 70 s. The other saw it at 61 s, and looks every two.
	whole := []string{"0s a leads", "1m11s a stops", "1m17s b leads"}
	for name, c := range map[string]struct {
		lets string
		want []string
	}{
		"no request arrives": {"", whole},
		"the last one arrives late": {http.MethodGet, append(slices.Clone(whole), "1m32s the late write gets 409",
			"1m41s the late write gets 409")}, // it stands again, for a lease that still names it
	} {
		t.Run(name, func(t *testing.T) {
			inElection(t, func(t *testing.T, e *election) {
				a := e.stand("a")
				settle(time.Second)
				e.stand("b")
				settle(time.Minute)
				e.expect(1, "0s a leads")
				a.lets = c.lets
				a.stalled.Store(true)
				settle(time.Minute)
				e.expect(1, c.want...)
				a.stalled.Store(false)
				settle(time.Minute)
				e.expect(1, c.want...)
				assert.Equal(t, 1, *e.lease().Spec.LeaseTransitions, "leaseTransitions")
			})
		})
	}
}

func TestALeaseIsTakenWhenItIsFree(t *testing.T) {
	spec := func(holder string, seconds int32) *coordinationv1.LeaseSpec {
		return &coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds,
			RenewTime: new(metav1.NewMicroTime(time.Unix(1, 0)))} // long ago by any clock
	}
	for name, c := range map[string]struct {
		found *coordinationv1.LeaseSpec
		want  []string
	}{
		"there is none":          {nil, []string{"0s a leads"}},
		"it has no holder":       {spec("", 15), []string{"0s a leads"}},
		"it is its own":          {spec("a", 15), []string{"0s a leads"}},
		"another's, for five":    {spec("z", 5), []string{"6s a leads"}}, // it has not seen it before
		"another's, for an hour": {spec("z", 3600), nil},
		"another's, for no time": {&coordinationv1.LeaseSpec{HolderIdentity: new("z")}, []string{"0s a leads"}},
	} {
		t.Run(name, func(t *testing.T) {
			inElection(t, func(t *testing.T, e *election) {
				if c.found != nil {
					e.must(e.leases().Post().Namespace("default").Resource("leases").Body(&coordinationv1.Lease{
						ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: *c.found}).Do(e.ctx).Error())
				}
				e.stand("a")
				settle(20 * time.Second)
				e.expect(len(c.want), c.want...)
			})
		})
	}
}

// TestOneOfManyCandidatesWins lets them all create the lease at once: all but one get 409.
func TestOneOfManyCandidatesWins(t *testing.T) {
	inElection(t, func(t *testing.T, e *election) {
		for i := range 5 {
			e.stand(fmt.Sprint("c", i))
		}
		settle(time.Minute)
		assert.Equal(t, 1, e.most, "leaders at once")
	})
}

// TestALeaseThatIsDeletedHasTwoLeadersForAMoment is what [LeaderElector] does not promise.
func TestALeaseThatIsDeletedHasTwoLeadersForAMoment(t *testing.T) {
	inElection(t, func(t *testing.T, e *election) {
		e.stand("a")
		settle(time.Second) // b looks between two renewals
		e.stand("b")
		settle(2*time.Second - 1)
		e.must(e.leases().Delete().Namespace("default").Resource("leases").Name("job").Do(e.ctx).Error())
		settle(10 * time.Second)
		e.expect(2, "0s a leads", "3s b leads", "5s a stops")
	})
}

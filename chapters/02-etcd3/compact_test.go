package etcd3

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/mvcc"
)

// oldest returns the oldest revision that can be read.
func oldest(t *testing.T, client *mvcc.Store) int64 {
	t.Helper()
	for rev := int64(1); ; rev++ {
		_, err := client.Get(t.Context(), "x", kubernetes.GetOptions{Revision: rev})
		if err == nil {
			return rev
		}
		require.True(t, errors.Is(err, rpctypes.ErrCompacted), err)
	}
}

// compacting runs test in a bubble with an etcd, and a way to run compactors until the test ends or stops them.
func compacting(t *testing.T, test func(client *mvcc.Store, run func(*Compactor) (stop func()))) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var group routine.Group
		test(mvcc.New(clock.RealClock{}), func(c *Compactor) (stop func()) {
			own, stop := context.WithCancel(ctx)
			group.Go(own, "test.compactor", c.Run)
			return stop
		})
		cancel()
		group.Wait()
	})
}

func TestHistoryIsKeptForAtLeastOneIntervalAndLessThanTwo(t *testing.T) {
	compacting(t, func(client *mvcc.Store, run func(*Compactor) func()) {
		c := NewCompactor(client, clock.RealClock{}, DefaultCompactInterval)
		run(c)
		client.Put("/registry/a", nil) // 2
		time.Sleep(time.Second)

		time.Sleep(DefaultCompactInterval) // writes 3
		if got := oldest(t, client); got != 1 || c.CompactRevision() != 0 {
			t.Errorf("after one interval: oldest %d, compacted %d, want nothing compacted", got, c.CompactRevision())
		}
		client.Put("/registry/b", nil)     // 4
		time.Sleep(DefaultCompactInterval) // writes 5
		if got := oldest(t, client); got != 3 || c.CompactRevision() != 3 {
			t.Errorf("after two: oldest %d, compacted %d, want 3", got, c.CompactRevision())
		}
		time.Sleep(DefaultCompactInterval) // writes 6
		assert.Equal(t, 5, oldest(t, client), "after three: oldest")
	})
}

func TestOfTwoCompactorsOneHasTheTurnAndTheOtherLearns(t *testing.T) {
	compacting(t, func(client *mvcc.Store, run func(*Compactor) func()) {
		first := NewCompactor(client, clock.RealClock{}, time.Minute)
		run(first)
		time.Sleep(time.Second)
		second := NewCompactor(client, clock.RealClock{}, time.Minute)
		stopSecond := run(second)

		time.Sleep(5*time.Minute + time.Second)
		assert.Equal(t, 6, client.Revision(), "after five intervals, with one write each: revision")
		assert.True(t, first.CompactRevision() == 5 && second.CompactRevision() == 5,
			"known compactions: got %d and %d, want 5 for both", first.CompactRevision(), second.CompactRevision())
		stopSecond()
		time.Sleep(time.Minute)
		assert.Equal(t, 7, client.Revision(), "one alone: revision")
	})
}

func TestStrangeCompactKeyIsNoCompaction(t *testing.T) {
	client := mvcc.New(clock.RealClock{})
	client.Put(compactRevKey, []byte("what?"))
	c := NewCompactor(client, clock.RealClock{}, DefaultCompactInterval)
	for range 3 {
		require.NoError(t, c.compact(t.Context()))
	}
	assert.Equal(t, 3, c.CompactRevision())
	require.Value(client.OptimisticDelete(t.Context(), compactRevKey, client.Revision(), kubernetes.DeleteOptions{}))(t)
	err := c.compact(t.Context())
	assert.True(t, err == nil && c.expected == 0, "got %v, expects %d, want a fresh beginning", err, c.expected)
}

// grants counts the leases that are granted. While err is not nil, none is.
type grants struct {
	Client
	n   int
	err error
}

func (g *grants) GrantLease(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	if g.err != nil {
		return 0, g.err
	}
	g.n++
	return g.Client.GrantLease(ctx, ttl)
}

func expiring(ttl time.Duration) func(*Config) { return func(cfg *Config) { cfg.TTL = ttl } }

func TestObjectsWithATimeToLiveAreDeletedByEtcd(t *testing.T) {
	bubble.Run(t, "memory", func(t *testing.T) {
		client := mvcc.New(clock.RealClock{})
		s := newStore(t, client, expiring(time.Hour))
		w := start(t, s, everything())
		create(t, s, pod("a", "")) // 2
		time.Sleep(50 * time.Minute)
		create(t, s, pod("b", ""))   // 3
		relabel(t, s, "a", "again")  // 4: a lives another hour
		time.Sleep(30 * time.Minute) // more than an hour after a was created
		w.want(t, "ADDED a 2", "ADDED b 3", "MODIFIED a 4 again")
		time.Sleep(40 * time.Minute)
		// leases are looked at when the store is used
		require.Value(s.GetCurrentResourceVersion(t.Context()))(t)
		w.want(t, "DELETED a 5 again", "DELETED b 6")
	})
	t.Run("etcd", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		s := newStore(t, newEtcd(t), expiring(2*time.Second))
		w := require.Value(s.Watch(ctx, prefix, everything()))(t)
		defer w.Stop()
		create(t, s, pod("a", "web"))
		for _, want := range []string{"ADDED a 2 web", "DELETED a 3 web"} {
			e, ok := <-w.ResultChan()
			require.True(t, ok && line(e) == want, "got %v %v, want %s", e, ok, want)
		}
	})
}

func TestWhatIsWrittenAtAboutTheSameTimeSharesALease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client := &grants{Client: mvcc.New(clock.RealClock{})}
		s := newStore(t, client, expiring(time.Hour))
		for i, c := range []struct {
			after  time.Duration
			grants int
		}{{0, 1}, {30 * time.Second, 1}, {29 * time.Second, 1}, {2 * time.Second, 2}, {59 * time.Second, 2},
			{time.Hour, 3}} {
			time.Sleep(c.after)
			create(t, s, pod(string(rune('a'+i)), ""))
			assert.Equal(t, c.grants, client.n, "write %d: got %d leases, want %d", i, client.n, c.grants)
		}
		for i := range 1000 {
			relabel(t, s, "f", string(rune('a'+i%2)))
		}
		assert.Equal(t, 4, client.n, "after many writes: got %d leases, want 4", client.n)
	})
}

// slowClock is behind etcd's: what it takes for a lease is none any more.
type slowClock struct{ clock.WithTicker }

func (slowClock) Now() time.Time { return time.Time{}.Add(time.Hour) }

func TestALeaseThatEtcdHasEndedIsReplaced(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client := &grants{Client: mvcc.New(clock.RealClock{})}
		s := newStore(t, client, func(cfg *Config) { cfg.TTL, cfg.Clock = time.Hour, slowClock{cfg.Clock} })
		create(t, s, pod("a", ""))
		time.Sleep(2 * time.Hour)
		got := create(t, s, pod("b", "")).ResourceVersion
		assert.True(t, client.n == 2 && got == "4", "got version %s after %d leases, want 4 after 2", got, client.n)
	})
}

func TestAGrantThatFailsFailsItsWriteAndIsTriedAgain(t *testing.T) {
	client := &grants{Client: mvcc.New(clock.RealClock{}), err: errors.New("etcd is away")}
	manager := newLeaseManager(client, clock.RealClock{}, time.Hour)
	_, err := manager.getLease(t.Context())
	assert.True(t, errors.Is(err, client.err), "got %v, want %v", err, client.err)
	client.err = nil
	first, err := manager.getLease(t.Context())
	assert.True(t, err == nil && first != 0, "got %d, %v", first, err)
	assert.False(t, manager.isGone(first, errors.New("any other error")), "any error ends a lease")
	second, err := manager.getLease(t.Context())
	assert.True(t, second == first && err == nil, "got %d, %v, want %d again", second, err, first)
}

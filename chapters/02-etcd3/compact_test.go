package etcd3

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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
		_, err := client.Get(context.Background(), "x", kubernetes.GetOptions{Revision: rev})
		if err == nil {
			return rev
		}
		require.True(t, errors.Is(err, rpctypes.ErrCompacted), err)
	}
}

func TestHistoryIsKeptForAtLeastOneIntervalAndLessThanTwo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client := mvcc.New(clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		var group routine.Group
		c := NewCompactor(client, clock.RealClock{}, DefaultCompactInterval)
		group.Go(ctx, "test.compactor", c.Run)
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
		assert.Equal(t, oldest(t, client), 5, "after three: oldest")
		cancel()
		group.Wait()
	})
}

func TestOfTwoCompactorsOneHasTheTurnAndTheOtherLearns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client := mvcc.New(clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		var group routine.Group
		first := NewCompactor(client, clock.RealClock{}, time.Minute)
		group.Go(ctx, "test.first", first.Run)
		time.Sleep(time.Second)
		second := NewCompactor(client, clock.RealClock{}, time.Minute)
		secondCtx, stopSecond := context.WithCancel(ctx)
		group.Go(secondCtx, "test.second", second.Run)

		time.Sleep(5*time.Minute + time.Second)
		got := client.Revision()
		assert.Equal(t, got, 6, "after five intervals: revision %d, want 6, one write each", got)
		if first.CompactRevision() != 5 || second.CompactRevision() != 5 {
			t.Errorf("known compactions: got %d and %d, want 5 for both", first.CompactRevision(),
				second.CompactRevision())
		}
		stopSecond()
		time.Sleep(time.Minute)
		got = client.Revision()
		assert.Equal(t, got, 7, "one alone: revision %d, want 7", got)
		cancel()
		group.Wait()
	})
}

func TestCompactorTakesOverFromOneThatDied(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client := mvcc.New(clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		var group routine.Group
		dying, die := context.WithCancel(ctx)
		group.Go(dying, "test.first", NewCompactor(client, clock.RealClock{}, time.Minute).Run)
		time.Sleep(90 * time.Second)
		die()
		heir := NewCompactor(client, clock.RealClock{}, time.Minute)
		group.Go(ctx, "test.heir", heir.Run)
		rev := client.Put("/registry/x", nil)
		time.Sleep(2*time.Minute + time.Second)
		got := heir.CompactRevision()
		assert.Equal(t, got, rev, "compacted to %d, want %d, the newest when the heir first looked", got, rev)
		cancel()
		group.Wait()
	})
}

func TestStrangeCompactKeyIsNoCompaction(t *testing.T) {
	client := mvcc.New(clock.RealClock{})
	client.Put(compactRevKey, []byte("what?"))
	c := NewCompactor(client, clock.RealClock{}, DefaultCompactInterval)
	for range 3 {
		require.NoError(t, c.compact(t.Context()))
	}
	assert.Equal(t, c.CompactRevision(), 3)
	client.Delete(compactRevKey)
	if err := c.compact(t.Context()); err != nil || c.expected != 0 {
		t.Errorf("got %v, expects %d, want a fresh beginning", err, c.expected)
	}
}

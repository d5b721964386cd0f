package etcdnode

import (
	"context"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// keep runs a keeper for as long as the test runs, and returns it.
func keep(t *testing.T, node *Etcd) *Keeper {
	k := NewKeeper(t.Context(), node.Client(), true)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}) // closed when Run has returned
	go func() {
		defer close(done)
		k.Run(ctx, func(ctx context.Context) (int64, error) {
			response, err := node.Client().Get(ctx, "a")
			if err != nil {
				return 0, err
			}
			_, err = node.Client().Compact(ctx, response.Header.Revision)
			return response.Header.Revision, err
		}, func(State) {})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return k
}

func until(t *testing.T, k *Keeper, what string, fact func(State) bool) {
	t.Helper()
	eventually.Holds(t, what, func() bool { return fact(k.State()) })
}

// lookAgain waits for a look that begins from now on: the next one may have begun before.
func lookAgain(t *testing.T, k *Keeper) {
	t.Helper()
	for range 2 {
		seen := k.state.Load()
		until(t, k, "another look", func(State) bool { return k.state.Load() != seen })
	}
}

func small(t *testing.T) *Etcd {
	node := require.Value(Start(t.Context(), Options{Dir: t.TempDir(), Quota: 4 << 20}))(t)
	t.Cleanup(func() { node.Close() })
	return node
}

var bigValue = strings.Repeat("x", 100<<10)

func TestWhatIsFullCanBeWrittenAgainAfterDeletions(t *testing.T) {
	t.Parallel()
	node := small(t)
	k := keep(t, node)
	until(t, k, "ready", func(s State) bool { return s.Ready() == nil })
	var err error
	for i := 0; err == nil; i++ {
		_, err = node.Client().Put(t.Context(), fmt.Sprintf("a/%d", i), bigValue)
	}
	require.True(t, strings.Contains(err.Error(), "etcdserver: mvcc: database space exceeded"), "got %v", err)
	until(t, k, "not ready", func(s State) bool { return s.Ready() != nil })
	if _, err := node.Client().Delete(t.Context(), "a/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	until(t, k, "ready again", func(s State) bool { return s.Ready() == nil && !s.Members[0].Full })
	put(t, node.Client(), "a", bigValue)
}

func TestHistoryIsForgottenBeforeEtcdIsFull(t *testing.T) {
	t.Parallel()
	node := small(t)
	k := keep(t, node)
	for range 12 { // 60 values in all; the database has room for 40
		for range 5 {
			put(t, node.Client(), "a", bigValue)
		}
		node.nodes[0].member.Load().server.KV().Commit() // or a look would not count the newest values yet
		lookAgain(t, k)
		until(t, k, "room", func(s State) bool { return s.Members[0].Bytes < 34*int64(len(bigValue)) })
	}
}

func TestNothingIsForgottenAsLongAsThereIsRoom(t *testing.T) {
	t.Parallel()
	node := small(t)
	k := keep(t, node)
	first := put(t, node.Client(), "a", bigValue)
	for range 10 { // the keeper forgets from 30 on; on a slow machine pages that were just freed still count
		put(t, node.Client(), "a", bigValue)
	}
	lookAgain(t, k)
	_, err := node.Client().Get(t.Context(), "a", clientv3.WithRev(first))
	assert.NoError(t, err)
}

package mvcc_test

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/server/mvcc"
)

func TestWatchFromTheFutureWaitsForIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := mvcc.New(clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		responses := store.Watch(ctx, "/p/", clientv3.WithPrefix(), clientv3.WithRev(4))
		for range 3 {
			store.Put("/p/a", nil) // 2, 3, 4
		}
		if response := <-responses; len(response.Events) != 1 || response.Events[0].Kv.ModRevision != 4 {
			t.Errorf("got %+v, want revision 4 only", response)
		}
		cancel()
		for range responses {
		}
	})
}

func TestARestoredStoreCountsOnFromItsBackup(t *testing.T) {
	store := mvcc.New(clock.RealClock{})
	store.Put("/p/a", []byte("first")) // 2
	store.Put("/p/a", []byte("second"))
	store.Put("/p/b", nil)
	restored := store.Until(2)
	kept, err := restored.Get(t.Context(), "/p/a", kubernetes.GetOptions{})
	lost, errLost := restored.Get(t.Context(), "/p/b", kubernetes.GetOptions{})
	assert.True(t, err == nil && errLost == nil && string(kept.KV.Value) == "first" && kept.KV.ModRevision == 2 &&
		lost.KV == nil, "got %v and %v (%v, %v), want the first value at 2, and nothing", kept.KV, lost.KV, err,
		errLost)
	if rev, other := restored.Put("/p/c", nil), store.Put("/p/c", nil); rev != 3 || other != 5 {
		t.Errorf("the next write is revision %d, and that of the other store %d, want 3 and 5", rev, other)
	}
}

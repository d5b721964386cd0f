package mvcc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"listwatch/internal/mvcc"
)

func TestIdleWatchThatAskedIsToldTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mvcc.New(clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		asked := store.Watch(ctx, "/p/", clientv3.WithPrefix(), clientv3.WithProgressNotify())
		silent := store.Watch(ctx, "/p/", clientv3.WithPrefix())
		store.Put("/q", nil)
		begin := time.Now()
		response := <-asked
		if !response.IsProgressNotify() || response.Header.Revision != 2 {
			t.Errorf("got %+v, want progress at 2", response)
		}
		if elapsed := time.Since(begin); elapsed != 10*time.Minute {
			t.Errorf("after %v, want 10m", elapsed)
		}
		synctest.Wait()
		select {
		case response := <-silent:
			t.Errorf("the other watch was told %+v", response)
		default:
		}
		cancel()
		for range asked {
		}
		for range silent {
		}
	})
}

func TestWatchFromTheFutureWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

package informer

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	deltafifo "listwatch/chapters/10-deltafifo"
)

// syncedPollPeriod is how often [WaitForCacheSync] asks.
const syncedPollPeriod = 100 * time.Millisecond

// InformerSynced is a HasSynced method.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: InformerSynced
type InformerSynced func() bool

// WaitFor waits until every checker is done, and returns false if ctx is done before.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: WaitFor
// Differs: waits for one after the other, since callers are not told which of them came first.
func WaitFor(ctx context.Context, checkers ...deltafifo.DoneChecker) bool {
	for _, checker := range checkers {
		select {
		case <-checker.Done():
		case <-ctx.Done():
			if !deltafifo.IsDone(checker) { // select chooses at random if both are ready
				return false
			}
		}
	}
	return true
}

// WaitForCacheSync is WaitFor for callers that have only functions to ask. It polls, and so may be late by 100 ms.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: WaitForCacheSync
func WaitForCacheSync(ctx context.Context, clk clock.WithTicker, cacheSyncs ...InformerSynced) bool {
	ticker := clk.NewTicker(syncedPollPeriod)
	defer ticker.Stop()
	for !allSynced(cacheSyncs) {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C():
		}
	}
	return true
}

func allSynced(cacheSyncs []InformerSynced) bool {
	for _, hasSynced := range cacheSyncs {
		if !hasSynced() {
			return false
		}
	}
	return true
}

package informer

import (
	"context"

	deltafifo "listwatch/chapters/10-deltafifo"
)

// WaitFor waits until every channel is closed, and returns false if ctx is done before.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: WaitFor
// Differs: waits for one after the other, since callers are not told which of them came first.
// There is no WaitForCacheSync, which polls every 100 ms.
func WaitFor(ctx context.Context, all ...<-chan struct{}) bool {
	for _, done := range all {
		select {
		case <-done:
		case <-ctx.Done():
			if !deltafifo.IsDone(done) { // select chooses at random if both are ready
				return false
			}
		}
	}
	return true
}

package reflector

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/observe/routine"
)

// watchWithResync runs watch and startResync at the same time, and returns when both have ended.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).watchWithResync
// Differs: without a resync period there is no goroutine.
func (r *Reflector) watchWithResync(ctx context.Context, w watch.Interface) error {
	if r.config.ResyncPeriod == 0 {
		return r.watch(ctx, w, nil)
	}
	resyncCtx, cancel := context.WithCancel(ctx)
	// Sent by startResync at most once, never closed; 1: the send never waits.
	resyncerrc := make(chan error, 1)
	var group routine.Group
	group.Go(resyncCtx, "reflector.startResync", func(ctx context.Context) { r.startResync(ctx, resyncerrc) })
	err := r.watch(ctx, w, resyncerrc)
	cancel()
	group.Wait()
	return err
}

// startResync makes the store look at everything again from time to time, until ctx is done or
// the store's Resync fails. It never talks to the server.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).startResync
func (r *Reflector) startResync(ctx context.Context, resyncerrc chan<- error) {
	// Each period begins when the last resync is over, so even a slow store gets a pause.
	for routine.Sleep(ctx, r.config.Clock, r.config.ResyncPeriod) == nil {
		if r.config.ShouldResync != nil && !r.config.ShouldResync() {
			continue
		}
		if err := r.config.Store.Resync(); err != nil {
			resyncerrc <- err
			return
		}
	}
}

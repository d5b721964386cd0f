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
	s := &resyncer{r: r, errc: make(chan error, 1)}
	var group routine.Group
	group.Go(resyncCtx, "reflector.startResync", s.startResync)
	err := r.watch(ctx, w, s.errc)
	cancel()
	group.Wait()
	return err
}

// resyncer makes the store look at everything again from time to time. It never talks to the server.
type resyncer struct {
	r    *Reflector
	errc chan error // sent by startResync at most once, never closed; holds 1, so that the send never waits
}

// startResync runs until ctx is done or the store's Resync fails.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).startResync
func (s *resyncer) startResync(ctx context.Context) {
	config := &s.r.config
	// Each period begins when the last resync is over, so a slow store is not resynced all the
	// time.
	for routine.Sleep(ctx, config.Clock, config.ResyncPeriod) == nil {
		if config.ShouldResync != nil && !config.ShouldResync() {
			continue
		}
		if err := config.Store.Resync(); err != nil {
			s.errc <- err
			return
		}
	}
}

package watchcache

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// blockTimeout is how long a reader waits for a resource version before it gets "too large". Upstream's.
const blockTimeout = 3 * time.Second

// WaitUntilFresh returns when the cache has reached rv, at once if rv is 0. The error is 504 Timeout, with cause
// ResourceVersionTooLarge, if that takes longer than three seconds; ctx's, if it ends before; 503 if the cache does.
func (w *WatchCache) WaitUntilFresh(ctx context.Context, key string, rv uint64) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.waitUntilFreshLocked(ctx, key, rv)
}

// waitUntilFreshLocked is [WatchCache.WaitUntilFresh] for a caller that holds w.mu for reading.
// It releases w.mu while it waits; otherwise the one writer it waits for could never write.
// Each new version wakes the reader, as does a tick every 100 ms. key is only reported.
//
// While a reader waits, the storage is asked for progress: on a quiet resource no event will
// ever bring the version that is waited for, which another resource may have pushed ahead.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).waitUntilFreshLocked
// Differs: a reader whose request is over stops waiting; upstream's waits all three seconds.
func (w *WatchCache) waitUntilFreshLocked(ctx context.Context, key string, rv uint64) error {
	if rv == 0 {
		return nil // any version will do
	}
	start := w.config.Patience.Now()
	defer w.observeReadWait(start)
	if rv <= w.resourceVersion {
		return nil
	}
	w.progress.Add()
	defer w.progress.Remove()
	w.wakeups.Add()
	defer w.wakeups.Remove()
	w.config.Probe.At(probe.FreshnessWait, key, rv)

	for w.resourceVersion < rv {
		if err := w.waitedEnoughLocked(ctx, rv, start); err != nil {
			w.config.Probe.Text(probe.FreshnessGivenUp, err.Error(), key, rv)
			return err
		}
		w.cond.Wait()
	}
	w.config.Probe.At(probe.FreshnessReady, key, rv)
	return nil
}

func (w *WatchCache) observeReadWait(start time.Time) {
	if w.config.ReadWait != nil {
		w.config.ReadWait.Observe(w.config.Patience.Since(start).Seconds())
	}
}

// waitedEnoughLocked returns the reason not to wait any longer, nil if there is none.
func (w *WatchCache) waitedEnoughLocked(ctx context.Context, rv uint64, start time.Time) error {
	switch {
	case w.stopped:
		return apierrors.NewServiceUnavailable("the watch cache is stopped")
	case ctx.Err() != nil:
		return fmt.Errorf("wait until the cache reaches %d: %w", rv, ctx.Err())
	case w.config.Patience.Since(start) >= blockTimeout:
		return storage.NewTooLargeResourceVersionError(rv, w.resourceVersion,
			storage.ResourceVersionTooHighRetrySeconds)
	}
	return nil
}

// wakeReaders lets every reader that waits look at the clock. It takes the lock, though it changes nothing: a reader
// holds the lock from looking until it sleeps, so none can miss the call in between.
func (w *WatchCache) wakeReaders(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cond.Broadcast()
	return nil
}

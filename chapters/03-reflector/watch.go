package reflector

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watch follows changes, opening one watch after another, until something happens that only a
// new list can heal. The first watch may be given as w, its initial events consumed; it will be
// stopped. The error is that of a watch that could not be opened. How each kind of end is
// treated:
//
//	cannot open: refused, 429   wait, open again at the same version: nothing was lost
//	cannot open: anything else  error
//	closed in an orderly way    open again at once, at the last version seen
//	closed at once, silently    nil: the server behaves strangely, so begin again
//	ERROR 410                   nil: the history is gone, so begin again
//	ERROR 429                   wait, open again
//	ERROR 500 InternalError     open again, as long as retryWithDeadline allows; then nil.
//	                            At once if the watch has brought an event or is a second
//	                            old; otherwise when that second is over
//	other ERROR; resync failed  nil
//	ctx done                    nil
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).watch
// Differs: after a 500 upstream always opens the next watch at once; a server that fails each
// as soon as it is open is then asked as fast as it can answer, for as long as
// MaxInternalErrorRetryDuration.
func (r *Reflector) watch(
	ctx context.Context, w watch.Interface, resyncerrc <-chan error,
) error {
	retry := &retryWithDeadline{
		clock: r.config.Clock, maxRetryDuration: r.config.MaxInternalErrorRetryDuration,
	}
	h := r.handOver(w)
	for ctx.Err() == nil {
		if h == nil {
			opened, err := r.openWatch(ctx)
			switch {
			case err != nil && ctx.Err() != nil:
				return nil // the error is only the echo of a done ctx
			case err != nil && isWatchErrorRetriable(err):
				r.backOff(ctx, err.Error())
				continue
			case err != nil:
				return err
			}
			h = opened
		}
		err := h.handleAnyWatch(ctx, resyncerrc)
		retry.After(err)
		if !r.watchAgain(ctx, h, err, retry) {
			return nil
		}
		h = nil
	}
	if h != nil {
		h.w.Stop()
	}
	return nil
}

// watchAgain decides, after the watch of h ended with err, whether to open the next one. It may wait.
func (r *Reflector) watchAgain(ctx context.Context, h *watchHandler, err error, retry *retryWithDeadline) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, errStopRequested):
		return false
	case isExpiredError(err):
		// The version is not marked as unavailable: a list at it is still answered, by something newer.
		return false
	case apierrors.IsTooManyRequests(err):
		return r.backOff(ctx, err.Error())
	case apierrors.IsInternalError(err):
		return retry.ShouldRetry() && r.sitOut(ctx, h, err)
	default:
		return false
	}
}

// sitOut waits until the watch of h is no longer a very short one, if it has brought nothing: a
// server that ends each watch at once is asked once a second. False if ctx is done.
func (r *Reflector) sitOut(ctx context.Context, h *watchHandler, err error) bool {
	rest := h.veryShort()
	if rest == 0 {
		return true
	}
	return r.pause(ctx, err.Error(), rest)
}

// handOver returns a handler that goes on with a watch whose initial events have been consumed, nil for nil.
func (r *Reflector) handOver(w watch.Interface) *watchHandler {
	if w == nil {
		return nil
	}
	return &watchHandler{r: r, w: w, store: r.config.Store, start: r.config.Clock.Now(), ordered: true}
}

// openWatch opens a watch from the last version seen.
func (r *Reflector) openWatch(ctx context.Context) (*watchHandler, error) {
	options := metav1.ListOptions{
		ResourceVersion:     r.LastSyncResourceVersion(),
		AllowWatchBookmarks: true,
		TimeoutSeconds:      r.watchTimeoutSeconds(),
	}
	h := &watchHandler{r: r, store: r.config.Store, start: r.config.Clock.Now(), ordered: !initialEvents(options)}
	return h, h.open(ctx, options)
}

// initialEvents reports whether options ask for the current state as a beginning, either openly or, in the older
// form, by the version they start from.
func initialEvents(options metav1.ListOptions) bool {
	if options.SendInitialEvents != nil {
		return *options.SendInitialEvents
	}
	return options.ResourceVersion == "" || options.ResourceVersion == "0"
}

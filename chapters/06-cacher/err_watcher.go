package cacher

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/observe/probe"
)

// errWatcher is a watch that is over before it has begun.
type errWatcher struct {
	watch.Interface
	probe *probe.Probe // without a subject: it was never registered
}

var _ probe.Probed = (*errWatcher)(nil)

// newErrWatcher returns a watch that consists of err, with the status of err, 500 if it has none.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: newErrWatcher
func newErrWatcher(err error, p *probe.Probe) watch.Interface {
	var withStatus apierrors.APIStatus
	if !errors.As(err, &withStatus) {
		withStatus = apierrors.NewInternalError(err)
	}
	status := withStatus.Status()
	result := make(chan watch.Event, 1) // filled and closed here; 1: the error
	result <- watch.Event{Type: watch.Error, Object: &status}
	close(result)
	return &errWatcher{watch.NewProxyWatcher(result), p.Subject("")}
}

// newImmediateCloseWatcher returns a watch that ends at once, without an event: the client tries again.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: newImmediateCloseWatcher
func newImmediateCloseWatcher() watch.Interface { return watch.NewEmptyWatch() }

// Probe lets the WatchServer say that the error was written.
func (w *errWatcher) Probe() *probe.Probe { return w.probe }

package cacher

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/observe/probe"
)

// errWatcher is a watch that is over before it has begun.
type errWatcher struct {
	result chan watch.Event // filled and closed by newErrWatcher; 1: the error
	probe  *probe.Probe     // without a subject: it was never registered
}

var _ probe.Probed = (*errWatcher)(nil)

// newErrWatcher returns a watch that consists of err, with the status that belongs to it, 500 if none does.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: newErrWatcher
func newErrWatcher(err error, p *probe.Probe) watch.Interface {
	var withStatus apierrors.APIStatus
	if !errors.As(err, &withStatus) {
		withStatus = apierrors.NewInternalError(err)
	}
	status := withStatus.Status()
	w := &errWatcher{result: make(chan watch.Event, 1), probe: p.Subject("")}
	w.result <- watch.Event{Type: watch.Error, Object: &status}
	close(w.result)
	return w
}

// newImmediateCloseWatcher returns a watch that ends at once, without a word: the client tries again.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: newImmediateCloseWatcher
func newImmediateCloseWatcher() watch.Interface { return watch.NewEmptyWatch() }

// ResultChan returns a channel that is closed already.
func (w *errWatcher) ResultChan() <-chan watch.Event { return w.result }

// Probe lets the WatchServer say that the error was written.
func (w *errWatcher) Probe() *probe.Probe { return w.probe }

// Stop does nothing.
func (w *errWatcher) Stop() {}

package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/probe"
	"listwatch/internal/routine"
)

// DecoratedWatcher is a watch whose objects pass through a function on their way out: state, deletions and bookmarks
// alike, so that they all look as a Get would show them. Errors pass untouched.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/decorated_watcher.go
// Differs: the decorator gets a copy, because our events are shared between watchers; upstream's cacher copies for it.
type DecoratedWatcher struct {
	// Set by NewDecoratedWatcher, never changed.
	inner     watch.Interface
	decorator func(runtime.Object)
	cancel    context.CancelFunc

	result chan watch.Event // sent and closed by run; unbuffered: the inner watch does the buffering
	group  routine.Group
}

var _ watch.Interface = (*DecoratedWatcher)(nil)

// NewDecoratedWatcher starts to decorate the events of inner, and owns inner from then on. It ends when inner ends,
// when ctx does, or at Stop.
func NewDecoratedWatcher(ctx context.Context, inner watch.Interface, decorator func(runtime.Object)) *DecoratedWatcher {
	ctx, cancel := context.WithCancel(ctx)
	d := &DecoratedWatcher{inner: inner, decorator: decorator, cancel: cancel, result: make(chan watch.Event)}
	d.group.Go(ctx, "decoratedWatcher.run", d.run)
	return d
}

// ResultChan returns the decorated events.
func (d *DecoratedWatcher) ResultChan() <-chan watch.Event { return d.result }

// Stop ends the watch. ResultChan is closed soon after.
func (d *DecoratedWatcher) Stop() { d.cancel() }

// Probe returns the probe of the inner watch.
func (d *DecoratedWatcher) Probe() *probe.Probe { return probe.Of(d.inner) }

// run owns result.
func (d *DecoratedWatcher) run(ctx context.Context) {
	defer close(d.result)
	defer d.inner.Stop()
	defer d.cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-d.inner.ResultChan():
			if !ok || !d.send(ctx, event) {
				return
			}
		}
	}
}

// send reports whether the event was taken.
func (d *DecoratedWatcher) send(ctx context.Context, event watch.Event) bool {
	if event.Type != watch.Error {
		event.Object = event.Object.DeepCopyObject()
		d.decorator(event.Object)
	}
	select {
	case <-ctx.Done():
		return false
	case d.result <- event:
		return true
	}
}

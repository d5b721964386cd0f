package reflector

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// veryShortWatch is the age below which a watch that ended without an event counts as failed.
const veryShortWatch = time.Second

// eventStore is the part of a [Store] that takes events.
type eventStore interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
}

// watchHandler carries the events of one watch into a store.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: handleAnyWatch
// Differs: upstream passes twelve arguments; the same things are fields here.
type watchHandler struct {
	// Set before handleAnyWatch.
	r     *Reflector
	w     watch.Interface
	store eventStore
	start time.Time // before the watch was asked for: some proxies hold back the answer until the first event

	// exitOnBookmark ends the handling, without stopping the watch, when the initial state is complete.
	exitOnBookmark bool

	// ordered is true once resource versions are worth remembering. Objects of an initial state come in key order, so
	// the version of one of them says nothing about the others; any event but ADDED shows that this is over.
	ordered bool

	// Owned by handleAnyWatch, read after it.
	eventCount       int
	bookmarkReceived bool   // the one that ends the initial events
	resourceVersion  string // the newest one worth remembering
}

// open opens the watch.
func (h *watchHandler) open(ctx context.Context, options metav1.ListOptions) error {
	w, err := h.r.config.ListerWatcher.Watch(ctx, options)
	if err != nil {
		h.r.lastWatchEnd = err.Error()
		return err
	}
	h.w = w
	said := []string{describe(options), options.ResourceVersion}
	h.r.probe.Texts(probe.ReflectorWatching, said, "", storage.ProbeVersion(options.ResourceVersion))
	return nil
}

// describe says in words where a watch begins.
func describe(options metav1.ListOptions) string {
	switch {
	case !initialEvents(options):
		return "changes after " + options.ResourceVersion
	case options.ResourceVersion == "":
		return "the newest state and its changes"
	default:
		return "a state not older than " + options.ResourceVersion + " and its changes"
	}
}

// handleAnyWatch carries events until the watch ends, and stops it; or, with exitOnBookmark, until the initial state
// is complete, and leaves it open. The error is that of an ERROR event, one received from errc (which may be nil), a
// [VeryShortWatchError], or errStopRequested. A watch that was closed in an orderly way gives nil.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: handleAnyWatch
func (h *watchHandler) handleAnyWatch(ctx context.Context, errc <-chan error) error {
	err := h.handleEvents(ctx, errc)
	if err == nil && h.exitOnBookmark && h.bookmarkReceived {
		return nil // the watch goes on in other hands
	}
	h.w.Stop()
	if err == nil && h.veryShort() > 0 {
		err = &VeryShortWatchError{Name: h.r.config.Name}
	}
	text := "closed"
	if err != nil {
		text = err.Error()
	}
	h.r.lastWatchEnd = text
	said := []string{text, string(apierrors.ReasonForError(err))}
	h.r.probe.Texts(probe.ReflectorWatchEnded, said, "", storage.ProbeVersion(h.r.LastSyncResourceVersion()))
	return err
}

// veryShort returns how long the watch has yet to last until it counts: 0 if it has brought an event, be it a bookmark,
// or is a second old.
func (h *watchHandler) veryShort() time.Duration {
	if h.eventCount > 0 {
		return 0
	}
	return max(0, veryShortWatch-h.r.config.Clock.Since(h.start))
}

func (h *watchHandler) handleEvents(ctx context.Context, errc <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return errStopRequested
		case err := <-errc: // nil if there is no resync: a nil channel is never ready
			return err
		case event, ok := <-h.w.ResultChan():
			if !ok {
				return nil
			}
			if err := h.handleEvent(event); err != nil {
				return err
			}
		}
		if h.exitOnBookmark && h.bookmarkReceived {
			return nil
		}
	}
}

// handleEvent carries one event into the store. The error is that of an ERROR event, or the
// store's own 410 Expired, for an event older than its newest. A list heals both.
//
// Any other error of the store is told, and the reflector goes on: what the store would not
// take now, it would not take a second time.
//
// Differs: upstream logs every error of the store, 410 included, and goes on.
func (h *watchHandler) handleEvent(event watch.Event) error {
	h.r.received(event)
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	obj := h.check(event)
	if obj == nil {
		return nil // skipped as a whole: not even its version is believed
	}
	err := h.apply(event, obj)
	h.eventCount++
	if isExpiredError(err) {
		return err
	}
	if err != nil {
		h.r.storeFailed(event, err)
	}
	if event.Type != watch.Added {
		h.ordered = true
	}
	// After the store: a reader that learns the version must find the event.
	h.recordResourceVersion(obj.GetResourceVersion())
	return nil
}

// check returns the metadata of an event's object, nil if the event is nothing we can use.
func (h *watchHandler) check(event watch.Event) metav1.Object {
	if expected := h.r.expectedType; expected != nil && reflect.TypeOf(event.Object) != expected {
		return nil
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		obj, _ := meta.Accessor(event.Object) // nil with an error
		return obj
	}
	return nil
}

// apply changes the store. The object of a DELETED event is the last state of what is gone, and goes into the store's
// Delete; the object of a bookmark has only a version and, once, the mark that the initial state is complete.
func (h *watchHandler) apply(event watch.Event, obj metav1.Object) error {
	switch event.Type {
	case watch.Added:
		return h.store.Add(event.Object)
	case watch.Modified:
		return h.store.Update(event.Object)
	case watch.Deleted:
		return h.store.Delete(event.Object)
	}
	if obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		h.bookmarkReceived = true
	}
	if s, ok := h.store.(BookmarkStore); ok {
		return s.Bookmark(obj.GetResourceVersion())
	}
	return nil
}

// recordResourceVersion remembers from where to go on. While an initial state is being
// collected nothing of it is in the real store yet, so the reflector is not told.
func (h *watchHandler) recordResourceVersion(resourceVersion string) {
	if !h.ordered {
		return
	}
	h.resourceVersion = resourceVersion
	if h.exitOnBookmark {
		return
	}
	h.r.setLastSyncResourceVersion(resourceVersion)
	if s, ok := h.store.(ResourceVersionUpdater); ok {
		s.UpdateResourceVersion(resourceVersion)
	}
}

// storeFailed counts and reports an event that the store has refused.
func (r *Reflector) storeFailed(event watch.Event, err error) {
	key, rv := Identify(r.probe, r.config.KeyOf, event.Object)
	r.nStoreErrors.Add(1)
	r.probe.Text(probe.ReflectorStoreFailed, err.Error(), key, rv)
}

// StoreErrors returns how many events the store has refused.
func (r *Reflector) StoreErrors() int64 { return r.nStoreErrors.Load() }

// received reports an event as it comes out of the watch.
func (r *Reflector) received(event watch.Event) {
	key, rv := Identify(r.probe, r.config.KeyOf, event.Object)
	r.probe.Event(probe.ReflectorReceived, string(event.Type), key, rv)
}

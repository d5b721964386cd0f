package reflector

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// watchList makes the store's content that of one stream's initial events, and returns the
// stream, still open, for the changes that follow. Both results are nil when ctx is done. An
// error means that this server does not stream initial events, or not now, or that the store
// refused them: a list may still work.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).watchList
func (r *Reflector) watchList(ctx context.Context) (watch.Interface, error) {
	for ctx.Err() == nil {
		// From a clean store each time: what an interrupted stream has sent does not say what
		// it had yet to send.
		temporary := newTemporaryStore(r.config.Store)
		w, rv, err := r.streamInitialEvents(ctx, temporary)
		switch {
		case err == nil && w != nil:
			return r.installInitialEvents(w, temporary, rv)
		case ctx.Err() != nil:
			return nil, nil
		case err == nil:
			continue // closed too early, cleanly: the same again
		case isWatchErrorRetriable(err):
			r.backOff(ctx, err.Error())
		case r.isUnavailable(err):
			continue // at once, with another version
		default:
			return nil, err
		}
	}
	return nil, nil
}

// streamInitialEvents fills temporary from a new stream. If the stream's state is complete, it
// returns the stream and the version of the state. If the stream ended cleanly before that, all
// results are nil.
func (r *Reflector) streamInitialEvents(
	ctx context.Context, temporary *temporaryStore,
) (watch.Interface, string, error) {
	sendInitialEvents := true
	options := metav1.ListOptions{
		ResourceVersion:      r.rewatchResourceVersion(),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		SendInitialEvents:    &sendInitialEvents,
		AllowWatchBookmarks:  true,
		TimeoutSeconds:       r.watchTimeoutSeconds(),
	}
	start := r.config.Clock.Now()
	h := &watchHandler{r: r, store: temporary, start: start, exitOnBookmark: true}
	if err := h.open(ctx, options); err != nil {
		return nil, "", err
	}
	if err := h.handleAnyWatch(ctx, nil); err != nil {
		return nil, "", err
	}
	if !h.bookmarkReceived {
		return nil, "", nil
	}
	return h.w, h.resourceVersion, nil
}

// installInitialEvents hands the state over to the store, which may be a queue that another
// goroutine drains: that is why the state was not collected there.
func (r *Reflector) installInitialEvents(
	w watch.Interface, temporary *temporaryStore, resourceVersion string,
) (watch.Interface, error) {
	items := temporary.list()
	r.setIsLastSyncResourceVersionUnavailable(false)
	if err := r.config.Store.Replace(items, resourceVersion); err != nil {
		w.Stop()
		return nil, fmt.Errorf("store initial events of %s: %w", r.config.Name, err)
	}
	r.setLastSyncResourceVersion(resourceVersion)
	r.probe.At(probe.ReflectorSynced, "", storage.ProbeVersion(resourceVersion), len(items))
	return w, nil
}

// temporaryStore collects a streamed state.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: NewStore
// Differs: the initial objects come out in the order of their keys, in which a server sends them; upstream's come out
// in random order.
type temporaryStore struct {
	transform TransformFunc // nil: none
	items     map[string]any
}

var _ eventStore = (*temporaryStore)(nil)

func newTemporaryStore(target Store) *temporaryStore {
	s := &temporaryStore{items: map[string]any{}}
	if t, ok := target.(TransformingStore); ok {
		s.transform = t.Transformer()
	}
	return s
}

func (s *temporaryStore) Add(obj any) error {
	key, err := MetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	if s.transform != nil {
		if obj, err = s.transform(obj); err != nil {
			return fmt.Errorf("transform %s: %w", key, err)
		}
	}
	s.items[key] = obj
	return nil
}

func (s *temporaryStore) Update(obj any) error { return s.Add(obj) }

func (s *temporaryStore) Delete(obj any) error {
	key, err := MetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	delete(s.items, key)
	return nil
}

func (s *temporaryStore) list() []any {
	items := make([]any, 0, len(s.items))
	for _, key := range slices.Sorted(maps.Keys(s.items)) {
		items = append(items, s.items[key])
	}
	return items
}

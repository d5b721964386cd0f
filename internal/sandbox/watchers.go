package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	registry "listwatch/chapters/07-registry"
	listwatch "listwatch/chapters/09-listwatch"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/routine"
)

const (
	// WatcherAgent is what the watchers call themselves, with a number behind it.
	WatcherAgent = userAgent + "-page-"

	userAgent    = "listwatch" // in front of the names of all clients of the program
	rewatchDelay = time.Second // how long a watcher waits after its stream has ended before it opens another
	maxWatchers  = 256
)

// WatcherOptions says what a watcher wants to see. Resource is required.
type WatcherOptions struct {
	Resource        string // "pods"
	Namespace       string // "": all
	LabelSelector   string
	FieldSelector   string
	ResourceVersion string // "": the current state first
	Bookmarks       bool
	WatchList       bool  // the first state comes as a stream that ends in a bookmark
	TimeoutSeconds  int64 // after which the server ends each of its streams; 0: as the server likes
	WebSocket       bool  // not as the chunks of one answer, but as the messages of a websocket
	Tour            bool  // it is closed when no page gives a tour any more
}

// WatcherInfo describes one watcher.
type WatcherInfo struct {
	ID        string
	UserAgent string // what it calls itself on the wire
	Options   WatcherOptions
	Error     string // why it is not open at the moment; "" if it is
}

// Watchers holds watches that are open just to look: each is a client of its own, over HTTP, that reads its stream and
// forgets it. When a stream ends the watcher opens another, from the last resource version that it has seen, or from the
// current state if that has expired, as every client of a watch has to do.
//
// Only the sandbox's goroutine changes the list.
type Watchers struct {
	// Set by newWatchers, never changed.
	client      *pipeline.Client
	connections *Connections
	clock       clock.WithTicker

	mu       sync.Mutex // guards the fields below and the mutable part of each watcher; innermost
	watchers []*watcher // in the order in which they were added
	last     int        // number of the last one
}

// watcher is one open watch.
type watcher struct {
	// Set by newWatcher, never changed.
	id, userAgent string
	options       WatcherOptions
	lister        *listwatch.ListWatch
	opened        chan error // sent once, by follow, when the first attempt to open has succeeded or failed; room for it

	cancel context.CancelFunc // ends follow; set by opening before follow starts
	err    string             // guarded by Watchers.mu

	// Owned by follow.
	resourceVersion string
	// ordered is true once resource versions are worth remembering. A watch that begins with the current state sends it
	// in key order: the version of one object says nothing about the others. Any event but ADDED shows that this is over.
	ordered bool
}

func newWatchers(client *pipeline.Client, connections *Connections, clk clock.WithTicker) *Watchers {
	return &Watchers{client: client, connections: connections, clock: clk}
}

// AddWatcher opens a watch and returns its id once the server has accepted it, or at once in a held world. Errors: 400
// and 404 for what cannot be watched, 429 if there are too many, or the server's; then no watcher is kept.
func (s *Sandbox) AddWatcher(ctx context.Context, options WatcherOptions) (id string, err error) {
	var added *watcher
	if err := s.do(ctx, s.opening(options, &added)); err != nil {
		return "", err
	}
	return added.id, nil
}

// opening returns the command that opens a watcher, which it leaves in added when it is taken.
func (s *Sandbox) opening(options WatcherOptions, added **watcher) *command {
	return &command{what: "a watcher", begin: func(ctx context.Context) (func(context.Context) error, error) {
		if err := s.watchers.check(options); err != nil {
			return nil, err
		}
		each := s.watchers.register(options)
		*added = each
		ctx, each.cancel = context.WithCancel(ctx)
		s.jobs.Go(ctx, "watchers.follow", func(ctx context.Context) { s.watchers.follow(ctx, each) })
		return func(context.Context) error {
			err := <-each.opened
			if err != nil {
				_ = s.watchers.remove(each.id) // it may be removed already
			}
			return err
		}, nil
	}}
}

// check returns why something cannot be watched, nil if it can.
func (w *Watchers) check(options WatcherOptions) error {
	known := func(each *registry.Resource) bool { return each.Name == options.Resource }
	switch {
	case !slices.ContainsFunc(registry.Resources(), known):
		return apierrors.NewNotFound(schema.GroupResource{Resource: "resources"}, short(options.Resource))
	case options.Namespace != "" && len(validation.IsDNS1123Label(options.Namespace)) > 0:
		return apierrors.NewBadRequest(fmt.Sprintf("namespace %q: %s", short(options.Namespace), validation.IsDNS1123Label(options.Namespace)[0]))
	case len(w.List()) >= maxWatchers:
		return apierrors.NewTooManyRequests(fmt.Sprintf("there are %d watchers: remove one", maxWatchers), 0)
	}
	return nil
}

// short returns the beginning of a text that a client sent.
func short(text string) string { return text[:min(len(text), 64)] }

func (w *Watchers) register(options WatcherOptions) *watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	name := strconv.Itoa(w.last)
	added := &watcher{id: "page-" + name, userAgent: WatcherAgent + name, options: options, opened: make(chan error, 1), resourceVersion: options.ResourceVersion}
	over := w.connections.watchers
	if options.WebSocket {
		over = w.connections.sockets
	}
	added.lister = listwatch.NewListWatch(w.client.NewClient(added.userAgent, nil, over), options.Resource, options.Namespace, nil)
	w.watchers = append(w.watchers, added)
	return added
}

// RemoveWatcher closes a watch. It does not wait for the end of its goroutine. The error is 404 for an id that is not
// open.
func (s *Sandbox) RemoveWatcher(ctx context.Context, id string) error {
	return s.do(ctx, &command{what: "the end of a watcher", begin: func(context.Context) (func(context.Context) error, error) {
		return nil, s.watchers.remove(id)
	}})
}

func (w *Watchers) remove(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.watchers, func(each *watcher) bool { return each.id == id })
	if i < 0 {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "watchers"}, short(id))
	}
	w.watchers[i].cancel()
	w.watchers = slices.Delete(w.watchers, i, i+1)
	return nil
}

func (w *Watchers) removeAll() {
	for _, each := range w.List() {
		_ = w.remove(each.ID) // it may be gone by itself
	}
}

// Watchers returns the watchers in the order in which they were added. It may be called from any goroutine.
func (s *Sandbox) Watchers() []WatcherInfo { return s.watchers.List() }

// List returns the watchers in the order in which they were added.
func (w *Watchers) List() []WatcherInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	infos := make([]WatcherInfo, 0, len(w.watchers))
	for _, each := range w.watchers {
		infos = append(infos, WatcherInfo{ID: each.id, UserAgent: each.userAgent, Options: each.options, Error: each.err})
	}
	return infos
}

// follow keeps one watch open until ctx is done.
func (w *Watchers) follow(ctx context.Context, each *watcher) {
	defer w.connections.forget(each.userAgent)
	for {
		stream, err := each.open(ctx)
		w.setError(each, err)
		select {
		case each.opened <- err:
		default: // only the first attempt is waited for
		}
		if err == nil && each.drain(ctx, stream) {
			return
		}
		if routine.Sleep(ctx, w.clock, rewatchDelay) != nil {
			return
		}
	}
}

// begin is called before each stream: one from no version, or from any, begins with the current state.
func (each *watcher) begin() {
	each.ordered = each.resourceVersion != "" && each.resourceVersion != "0"
}

func (each *watcher) open(ctx context.Context) (watch.Interface, error) {
	each.begin()
	options := metav1.ListOptions{
		LabelSelector:       each.options.LabelSelector,
		FieldSelector:       each.options.FieldSelector,
		ResourceVersion:     each.resourceVersion,
		AllowWatchBookmarks: each.options.Bookmarks,
	}
	if each.options.TimeoutSeconds > 0 {
		options.TimeoutSeconds = &each.options.TimeoutSeconds
	}
	if each.options.WatchList && each.resourceVersion == "" {
		initial := true
		options.SendInitialEvents = &initial
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		options.AllowWatchBookmarks = true // the state ends in one
	}
	return each.lister.Watch(ctx, options)
}

// drain reads the stream to its end. It returns true if ctx is done.
func (each *watcher) drain(ctx context.Context, stream watch.Interface) (over bool) {
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case event, ok := <-stream.ResultChan():
			if !ok {
				return false
			}
			each.remember(event)
		}
	}
}

// remember keeps the resource version to go on from. As long as the versions come in no order there is none: if the
// stream breaks, the next one begins with the current state again.
func (each *watcher) remember(event watch.Event) {
	if event.Type == watch.Error {
		each.resourceVersion = "" // expired, most likely: begin with the current state
		return
	}
	if event.Type != watch.Added {
		each.ordered = true
	}
	if accessor, err := meta.Accessor(event.Object); err == nil && each.ordered {
		each.resourceVersion = accessor.GetResourceVersion()
	}
}

func (w *Watchers) setError(each *watcher, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	each.err = ""
	if err != nil {
		each.err = fmt.Sprint(err)
	}
}

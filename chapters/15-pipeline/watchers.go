package pipeline

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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/routine"
)

// WatcherAgent is what the watchers call themselves, with a number behind it.
const WatcherAgent = userAgent + "-page-"

// rewatchDelay is how long a watcher waits after its stream has ended before it opens another.
const rewatchDelay = time.Second

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
}

// WatcherInfo describes one watcher.
type WatcherInfo struct {
	ID        string
	UserAgent string // what it calls itself on the wire
	Options   WatcherOptions
	Error     string // why it is not open at the moment; "" if it is
}

// Watchers holds watches that somebody opened just to look: each a client of its own, over HTTP, that reads its stream
// and forgets it. A stream that ends is opened again from the last resource version seen, or from the current state
// if that has expired, as every client of a watch has to do.
//
// Its methods may be called from any goroutine.
type Watchers struct {
	// Set by newWatchers, never changed.
	clients watcherClients
	clock   clock.WithTicker

	adds chan *watcher // sent by Add, received by Run, never closed; unbuffered: whoever adds waits until Run has it
	done chan struct{} // closed by Run when it ends

	mu       sync.Mutex // guards the fields below and the mutable part of each watcher; innermost
	watchers []*watcher // in the order in which they were added
	last     int        // number of the last one
}

// watcher is one open watch.
type watcher struct {
	// Set by Add, never changed.
	id, userAgent string
	options       WatcherOptions
	lister        *listwatch.ListWatch
	opened        chan error    // sent once, by follow, when the first attempt to open has succeeded or failed; room for it
	removed       chan struct{} // closed by Remove

	err string // guarded by Watchers.mu

	// Owned by follow.
	resourceVersion string
}

func newWatchers(clients watcherClients, clk clock.WithTicker) *Watchers {
	return &Watchers{clients: clients, clock: clk, adds: make(chan *watcher), done: make(chan struct{})}
}

// Run keeps the watches open until ctx is done, and returns when all of them are closed. It is called once.
func (w *Watchers) Run(ctx context.Context) {
	var group routine.Group
	defer close(w.done)
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case added := <-w.adds:
			group.Go(ctx, "watchers.follow", func(ctx context.Context) { w.follow(ctx, added) })
		}
	}
}

// Add opens a watch and returns its id once the server has accepted it. The error is the server's, ctx's, or 503 if the
// client half has stopped.
func (w *Watchers) Add(ctx context.Context, options WatcherOptions) (id string, err error) {
	added := w.register(options)
	select {
	case w.adds <- added:
	case <-w.done:
		err = apierrors.NewServiceUnavailable("the client half has stopped")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		err = w.awaitOpen(ctx, added)
	}
	if err != nil {
		_ = w.Remove(added.id)
		return "", err
	}
	return added.id, nil
}

func (w *Watchers) awaitOpen(ctx context.Context, added *watcher) error {
	select {
	case err := <-added.opened:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *Watchers) register(options WatcherOptions) *watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	id := "page-" + strconv.Itoa(w.last)
	added := &watcher{
		id: id, userAgent: WatcherAgent + strconv.Itoa(w.last), options: options,
		opened: make(chan error, 1), removed: make(chan struct{}),
		resourceVersion: options.ResourceVersion,
	}
	added.lister = listwatch.NewListWatch(w.clients.of(added.userAgent, options.WebSocket), options.Resource, options.Namespace, nil)
	w.watchers = append(w.watchers, added)
	return added
}

// Remove closes a watch. It does not wait for the end of its goroutine. The error is 404 for an id that is not open.
func (w *Watchers) Remove(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.watchers, func(each *watcher) bool { return each.id == id })
	if i < 0 {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "watchers"}, id)
	}
	close(w.watchers[i].removed) // once: whoever finds it in the list takes it out under the same lock
	w.watchers = slices.Delete(w.watchers, i, i+1)
	return nil
}

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

// follow keeps one watch open until it is removed or ctx is done.
func (w *Watchers) follow(ctx context.Context, each *watcher) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
		if !each.sleep(ctx, w.clock) {
			return
		}
	}
}

func (each *watcher) open(ctx context.Context) (watch.Interface, error) {
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

// drain reads the stream to its end. It returns true if the watcher is not wanted any more.
func (each *watcher) drain(ctx context.Context, stream watch.Interface) (over bool) {
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case <-each.removed:
			return true
		case event, ok := <-stream.ResultChan():
			if !ok {
				return false
			}
			each.remember(event)
		}
	}
}

// remember keeps the resource version to go on from. The initial ADDED events of a watch come in key order and not in
// that of their versions; that some of them may be seen twice after a break does not matter to who only looks.
func (each *watcher) remember(event watch.Event) {
	if event.Type == watch.Error {
		each.resourceVersion = "" // expired, most likely: begin with the current state
		return
	}
	if accessor, err := meta.Accessor(event.Object); err == nil {
		each.resourceVersion = accessor.GetResourceVersion()
	}
}

// sleep waits a moment. It returns false if the watcher is not wanted any more.
func (each *watcher) sleep(ctx context.Context, clk clock.WithTicker) bool {
	timer := clk.NewTimer(rewatchDelay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-each.removed:
		return false
	case <-timer.C():
		return true
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

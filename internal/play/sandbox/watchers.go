package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	registry "listwatch/chapters/07-registry"
	listwatch "listwatch/chapters/09-listwatch"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/routine"
)

const (
	// WatcherAgent is what the watchers call themselves, with a number behind it.
	WatcherAgent = userAgent + "-page-"

	userAgent    = "listwatch" // in front of the names of all clients of the program
	rewatchDelay = time.Second // how long a watcher waits after its stream has ended before it opens another
	maxWatchers  = 256
)

// Followed reports whether the watches of a client are always in the log event by event ([probe.Log.LimitLoud]): those
// of kubectl, of a story and of the program itself, but not the watchers that are opened from the page, which may be
// hundreds.
func Followed(agent string) bool {
	for _, known := range []string{"kubectl", "kubelet-", "story-", userAgent + "-"} {
		if strings.HasPrefix(agent, known) {
			return !strings.HasPrefix(agent, WatcherAgent)
		}
	}
	return false
}

// WatcherOptions says what a watcher wants to see. Resource is required.
type WatcherOptions struct {
	Resource        string `json:"resource"`  // "pods"
	Namespace       string `json:"namespace"` // "": all
	LabelSelector   string `json:"labelSelector"`
	FieldSelector   string `json:"fieldSelector"`
	ResourceVersion string `json:"resourceVersion"` // "": the current state first, as synthetic ADDED events
	Bookmarks       bool   `json:"bookmarks"`
	WatchList       bool   `json:"watchList"` // the first state comes as a stream that ends in a bookmark
	// after which the server ends each of its streams; 0: as the server likes
	TimeoutSeconds int64 `json:"timeoutSeconds"`
	Tour           bool  `json:"tour"` // it is closed when no page gives a tour any more
}

// WatcherInfo describes one watcher.
type WatcherInfo struct {
	ID        string         `json:"id"`
	UserAgent string         `json:"userAgent"` // what it calls itself on the wire
	Options   WatcherOptions `json:"options"`
	Error     string         `json:"error,omitempty"` // why it is not open at the moment; "" if it is
}

// watchers are watches that are open just to look: each is a client of its own, over HTTP, that reads its stream and
// forgets it. When a stream ends the watcher opens another, from the last resource version that it has seen, or from
// the current state if that has expired, as every client of a watch has to do.
//
// The command that has the machine to itself adds to the list. A watcher that the server refuses at its first attempt
// is taken out by its own command, while others may run.
type watchers struct {
	// Set by New, never changed.
	client      *pipeline.Client
	connections *Connections
	clock       clock.WithTicker

	mu   sync.Mutex // guards the fields below and the err of each watcher; innermost
	list []*watcher // in the order in which they were added
	last int        // number of the last one
}

// watcher is one open watch.
type watcher struct {
	// Set by add, never changed.
	id, userAgent string
	options       WatcherOptions
	lister        *listwatch.ListWatch
	cancel        context.CancelFunc // ends follow
	opened        chan error         // sent once, by follow, after its first attempt to open; room for it

	err error // guarded by watchers.mu

	// Owned by follow.
	resourceVersion string
	// ordered is true once resource versions are worth remembering. A watch that begins with the current state sends it
	// in key order: the version of one object says nothing about the others. Any event but ADDED shows that this is
	// over.
	ordered bool
}

// AddWatcher opens a watch and returns its id, once the server has accepted the watch, or earlier in a held world.
// Errors: 400 and 404 for what cannot be watched, 429 if there are too many, or the server's; then no watcher is kept.
func (s *Sandbox) AddWatcher(ctx context.Context, options WatcherOptions) (id string, receipt Receipt, err error) {
	open := &opening{Sandbox: s, options: options}
	if receipt, err = s.do(ctx, &order{command: open, name: "a watcher"}); err != nil {
		return "", Receipt{}, err
	}
	return open.id, receipt, nil
}

// opening is the command that opens a watcher.
type opening struct {
	*Sandbox
	options WatcherOptions
	story   *Telling // that opens it, and closes it at its end; nil: none
	id      string   // of the watcher, set before others may begin
}

// Do implements command.
func (o *opening) Do(ctx context.Context, begun func()) error {
	if err := o.watchers.check(o.options); err != nil {
		return err
	}
	if o.story != nil && o.story.cancelled() {
		return errCancelled
	}
	ctx, cancel := context.WithCancel(ctx)
	added := o.watchers.add(o.options, cancel)
	o.id = added.id
	if o.story != nil {
		o.story.watchers = append(o.story.watchers, added.id)
	}
	o.jobs.Go(ctx, "watchers.follow", func(ctx context.Context) { o.watchers.follow(ctx, added) })
	begun()
	err := <-added.opened
	if err != nil {
		_ = o.watchers.remove(added.id) // another command may have removed it
	}
	return err
}

// check returns why something cannot be watched, nil if it can.
func (w *watchers) check(options WatcherOptions) error {
	known := func(each *registry.Resource) bool { return each.Name == options.Resource }
	wrong := validation.IsDNS1123Label(options.Namespace)
	switch {
	case !slices.ContainsFunc(registry.Resources(), known):
		return notFound("resources", short(options.Resource))
	case options.Namespace != "" && len(wrong) > 0:
		return badRequest("namespace %q: %s", short(options.Namespace), wrong[0])
	case len(w.info()) >= maxWatchers:
		return apierrors.NewTooManyRequests(fmt.Sprintf("there are %d watchers: remove one", maxWatchers), 0)
	}
	return nil
}

// short returns the beginning of a text that a client sent.
func short(text string) string { return text[:min(len(text), 64)] }

func (w *watchers) add(options WatcherOptions, cancel context.CancelFunc) *watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	agent := WatcherAgent + strconv.Itoa(w.last)
	added := &watcher{
		id: strings.TrimPrefix(agent, userAgent+"-"), userAgent: agent, options: options, cancel: cancel,
		lister: listwatch.NewListWatch(w.client.NewClient(agent, nil, w.connections.watchers), options.Resource,
			options.Namespace, nil),
		opened: make(chan error, 1), resourceVersion: options.ResourceVersion,
	}
	w.list = append(w.list, added)
	return added
}

// RemoveWatcher closes a watch. It does not wait for the end of the watcher's goroutine. The error is 404 for an id
// that is not open.
func (s *Sandbox) RemoveWatcher(ctx context.Context, id string) error {
	_, err := s.do(ctx, &order{command: closing{s, id}, name: "the end of a watcher"})
	return err
}

// closing is the command that closes a watcher.
type closing struct {
	*Sandbox
	id string
}

// Do implements command.
func (c closing) Do(context.Context, func()) error { return c.watchers.remove(c.id) }

func (w *watchers) remove(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.list, func(each *watcher) bool { return each.id == id })
	if i < 0 {
		return notFound("watchers", short(id))
	}
	w.list[i].cancel()
	w.list = slices.Delete(w.list, i, i+1)
	return nil
}

func (w *watchers) removeAll() {
	for _, each := range w.info() {
		_ = w.remove(each.ID) // it may be gone by itself
	}
}

// Watchers returns the watchers in the order in which they were added. It may be called from any goroutine.
func (s *Sandbox) Watchers() []WatcherInfo { return s.watchers.info() }

func (w *watchers) info() []WatcherInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	infos := []WatcherInfo{}
	for _, each := range w.list {
		info := WatcherInfo{ID: each.id, UserAgent: each.userAgent, Options: each.options}
		if each.err != nil {
			info.Error = each.err.Error()
		}
		infos = append(infos, info)
	}
	return infos
}

// follow keeps one watch open until ctx is done.
func (w *watchers) follow(ctx context.Context, each *watcher) {
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

func (w *watchers) setError(each *watcher, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	each.err = err
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
		options.SendInitialEvents = new(true)
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

// remember keeps the resource version to resume from. As long as the versions come in no order there is none: if the
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

package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/routine"
)

const (
	// WatcherAgent is the user agent of the watchers, up to a number.
	WatcherAgent = userAgent + "-page-"

	userAgent    = "listwatch" // the user agents of all clients of the program begin so
	rewatchDelay = time.Second // how long a watcher waits after its stream has ended before it opens another
	maxWatchers  = 256
)

// Followed reports whether the log always has each event of a client's watches ([probe.Log.LimitLoud]): those of
// kubectl, of stories and of the program itself, but not those of the page's watchers, of which there may be hundreds.
func Followed(agent string) bool {
	for _, known := range []string{"kubectl", "kubelet-", "story-", userAgent + "-"} {
		if strings.HasPrefix(agent, known) {
			return !strings.HasPrefix(agent, WatcherAgent)
		}
	}
	return false
}

// WatcherOptions are the options of a watcher's watch. Resource is required.
type WatcherOptions struct {
	Resource        string `json:"resource"`  // as the log calls it: "pods", "widgets.example.com"
	Namespace       string `json:"namespace"` // "": all
	LabelSelector   string `json:"labelSelector"`
	FieldSelector   string `json:"fieldSelector"`
	ResourceVersion string `json:"resourceVersion"` // "": the current state first, as synthetic ADDED events
	Bookmarks       bool   `json:"bookmarks"`
	WatchList       bool   `json:"watchList"` // the first state comes as a stream that ends in a bookmark
	// after which the server ends each of its streams; 0: as the server likes
	TimeoutSeconds int64 `json:"timeoutSeconds"`
}

// WatcherInfo describes one watcher.
type WatcherInfo struct {
	ID        string         `json:"id"`
	UserAgent string         `json:"userAgent"` // its User-Agent
	Options   WatcherOptions `json:"options"`
	Error     string         `json:"error,omitempty"` // why it is not open at the moment; "" if it is
}

// watchers are the watches that viewers open. Each is an HTTP client of its own that reads its stream and drops the
// events. When a stream ends, the watcher opens another, from the last resource version that it has seen or, if that
// has expired, from the current state, as every client of a watch must.
//
// The command that has the machine to itself adds to the list. A watcher that the server refuses at its first attempt
// is taken out by its own command, while others may run.
type watchers struct {
	*Config // the sandbox's

	last  atomic.Int64 // number of the last one
	asked atomic.Int64 // requests of viewers that are open: see Ask

	mu   sync.Mutex // guards list, and the Error of each watcher; innermost
	list []*watcher // in the order in which they were added
}

// watcher is one open watch.
type watcher struct {
	// Set by make, never changed but for the Error, which watchers.mu guards.
	WatcherInfo
	lister reflector.ListerWatcher
	story  *Run               // whose end closes it; nil: none
	cancel context.CancelFunc // ends it; set before the watcher is in the list, never changed

	// Owned by the command that opens it, and then by follow.
	resourceVersion string
	// ordered is true once resource versions are worth remembering. A watch that begins with the current state sends it
	// in key order, so one version implies nothing about the others. Any event but ADDED comes after the state.
	ordered bool
}

// AddWatcher opens a watcher, for a story if there is one, whose end closes it. It returns once the server has accepted
// the watch, or earlier in a held world. Errors: 400 and 404 for what cannot be
// watched, 429 if there are too many, or the server's; then no watcher is kept.
func (s *Sandbox) AddWatcher(ctx context.Context, story *Run, options WatcherOptions) (WatcherInfo, Receipt,
	error) {
	added := s.watchers.make(options)
	added.story = story
	info := added.WatcherInfo // before there can be an error in it
	receipt, err := s.do(ctx, &order{name: "a watcher", story: story,
		do: func(ctx context.Context, begun func()) error { return s.open(ctx, added, begun) }})
	return info, receipt, err
}

// open is the command that opens a watcher.
func (s *Sandbox) open(ctx context.Context, added *watcher, begun func()) error {
	if err := s.watchers.check(added.Options); err != nil {
		return err
	}
	ctx, added.cancel = context.WithCancel(ctx)
	s.watchers.mu.Lock()
	s.watchers.list = append(s.watchers.list, added)
	s.watchers.mu.Unlock()
	begun()
	stream, err := added.open(ctx)
	if err != nil {
		s.watchers.remove(func(each *watcher) bool { return each == added })
		s.watchers.Connections.forget(added.UserAgent)
		return err
	}
	s.jobs.Go(ctx, "watchers.follow", func(ctx context.Context) { s.watchers.follow(ctx, added, stream) })
	return nil
}

// check returns the reason why options cannot be watched; nil: they can.
func (w *watchers) check(options WatcherOptions) error {
	wrong := validation.IsDNS1123Label(options.Namespace)
	switch {
	case w.Pipeline.Server.Resource(options.Resource) == nil:
		return notFound("resources", short(options.Resource))
	case options.Namespace != "" && len(wrong) > 0:
		return badRequest("namespace %q: %s", short(options.Namespace), wrong[0])
	case len(w.info()) >= maxWatchers:
		return apierrors.NewTooManyRequests(fmt.Sprintf("there are %d watchers: remove one", maxWatchers), 0)
	}
	return nil
}

// short returns the beginning of a client's text.
func short(text string) string { return text[:min(len(text), 64)] }

// nextAgent returns the user agent of the page's next client.
func (w *watchers) nextAgent() string { return WatcherAgent + strconv.FormatInt(w.last.Add(1), 10) }

func (w *watchers) make(options WatcherOptions) *watcher {
	agent := w.nextAgent()
	client := w.Pipeline.Client.NewClient(agent, nil)
	name := ""
	if resource := w.Pipeline.Server.Resource(options.Resource); resource != nil {
		if name = resource.Name; resource.GroupVersion.Group != "" {
			client = client.WithAPIPath("/apis/" + resource.GroupVersion.String())
		}
	}
	return &watcher{
		WatcherInfo:     WatcherInfo{ID: strings.TrimPrefix(agent, userAgent+"-"), UserAgent: agent, Options: options},
		lister:          client.ListWatch(name, options.Namespace, nil),
		resourceVersion: options.ResourceVersion,
	}
}

// RemoveWatcher closes a watch. It does not wait for the end of the watcher's goroutine. The error is 404 for an id
// that is not open.
func (s *Sandbox) RemoveWatcher(ctx context.Context, id string) error {
	_, err := s.do(ctx, &order{name: "the end of a watcher", do: func(context.Context, func()) error {
		if s.watchers.remove(func(each *watcher) bool { return each.ID == id }) == 0 {
			return notFound("watchers", short(id))
		}
		return nil
	}})
	return err
}

// remove closes the watches for which meant returns true, and returns their number.
func (w *watchers) remove(meant func(each *watcher) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.list)
	w.list = slices.DeleteFunc(w.list, func(each *watcher) bool {
		if meant(each) {
			each.cancel()
			return true
		}
		return false
	})
	return before - len(w.list)
}

// removeWatchers closes every watch, and breaks the streams of viewers' requests.
func (s *Sandbox) removeWatchers() {
	s.watchers.remove(func(*watcher) bool { return true })
	s.connections.breakAll(WatcherAgent)
}

// Watchers returns the watchers in the order in which they were added. It may be called from any goroutine.
func (s *Sandbox) Watchers() []WatcherInfo { return s.watchers.info() }

func (w *watchers) info() []WatcherInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	infos := []WatcherInfo{}
	for _, each := range w.list {
		infos = append(infos, each.WatcherInfo)
	}
	return infos
}

// follow keeps one watch open until ctx is done. It begins with stream.
func (w *watchers) follow(ctx context.Context, each *watcher, stream watch.Interface) {
	defer w.Connections.forget(each.UserAgent)
	for err := error(nil); err != nil || !each.drain(ctx, stream); {
		if routine.Sleep(ctx, w.Clock, rewatchDelay) != nil {
			return
		}
		stream, err = each.open(ctx)
		w.mu.Lock()
		if each.Error = ""; err != nil {
			each.Error = err.Error()
		}
		w.mu.Unlock()
	}
}

// begin is called before each stream. A stream from "" or "0" begins with the current state.
func (each *watcher) begin() {
	each.ordered = each.resourceVersion != "" && each.resourceVersion != "0"
}

func (each *watcher) open(ctx context.Context) (watch.Interface, error) {
	each.begin()
	options := metav1.ListOptions{
		LabelSelector:       each.Options.LabelSelector,
		FieldSelector:       each.Options.FieldSelector,
		ResourceVersion:     each.resourceVersion,
		AllowWatchBookmarks: each.Options.Bookmarks,
	}
	if each.Options.TimeoutSeconds > 0 {
		options.TimeoutSeconds = &each.Options.TimeoutSeconds
	}
	if each.Options.WatchList && each.resourceVersion == "" {
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

// remember keeps the resource version to resume from. During the initial state it keeps none: if the stream breaks
// then, the next one begins with the state again.
func (each *watcher) remember(event watch.Event) {
	if event.Type == watch.Error {
		each.resourceVersion = "" // probably expired: begin with the current state
		return
	}
	if event.Type != watch.Added {
		each.ordered = true
	}
	if accessor, err := meta.Accessor(event.Object); err == nil && each.ordered {
		each.resourceVersion = accessor.GetResourceVersion()
	}
}

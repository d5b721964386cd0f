package sandbox

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/routine"
)

const (
	// WatcherAgent is the user agent of the page's watchers and consoles, without the number at its end.
	WatcherAgent = userAgent + "-page-"

	userAgent    = "listwatch" // the beginning of most user agents of the program's own clients
	rewatchDelay = time.Second // the wait between the end of a watcher's stream and the next stream
	maxWatchers  = 256
)

// Followed reports whether the log records every event of a client's watches, however many are open
// ([probe.Log.LimitLoud]). It returns true for the user agents of kubectl, of stories and of the program's own clients,
// but false for the page's watchers: there may be hundreds of them.
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
	Resource        string `json:"resource"` // its name in the log: "pods", "widgets.example.com"
	LabelSelector   string `json:"labelSelector"`
	FieldSelector   string `json:"fieldSelector"`
	ResourceVersion string `json:"resourceVersion"` // "": begins with the current state, as synthetic ADDED events
	Bookmarks       bool   `json:"bookmarks"`
	WatchList       bool   `json:"watchList"` // a bookmark ends the current state; no effect with a ResourceVersion
	// The server ends each stream after this time; 0: after a time that the server chooses.
	TimeoutSeconds int64 `json:"timeoutSeconds"`
}

// WatcherInfo describes one watcher.
type WatcherInfo struct {
	ID        string         `json:"id"`
	UserAgent string         `json:"userAgent"` // in the headers of the watcher's requests
	Options   WatcherOptions `json:"options"`
	Error     string         `json:"error,omitempty"` // why the last attempt to reopen failed; "": it did not
}

// watchers holds the watches that viewers open. Each is a separate HTTP client that reads its stream and drops the
// events. When a stream ends, the watcher opens another one from the last resource version that it has saved, or, if
// the server no longer has that version, from the current state. Every client must resume a watch in this way.
//
// The command that has the machine to itself changes the list. But if the server refuses a watcher's first request, the
// watcher's command removes the watcher while other commands may run.
type watchers struct {
	*Config // shared with the Sandbox; never changed

	last  atomic.Int64 // number of the newest watcher or request of a viewer
	asked atomic.Int64 // open requests of viewers: see Ask

	mu   sync.Mutex // guards list, and the Error of each watcher; innermost
	list []*watcher // oldest first
}

// watcher is one watch, which is kept open over several streams.
type watcher struct {
	// Set before the watcher is in the list, never changed, except for Error, which watchers.mu guards.
	WatcherInfo
	lister reflector.ListerWatcher
	story  *Run               // the story whose end closes the watch; nil: none; set by AddWatcher
	cancel context.CancelFunc // ends the watch; set by open

	// Owned by the command that opens the watch, and then by follow.
	resourceVersion string
	// ordered reports whether the version of an event may be saved, to resume from it. A watch that begins with the
	// current state sends the state in key order, so an object's version implies nothing about the other objects. The
	// first event other than ADDED comes after the state.
	ordered bool
}

// AddWatcher opens a watcher. If there is a story, its end closes the watcher. AddWatcher returns when the server has
// accepted the watch, or earlier in a held world. Errors: 400 or 404 for wrong options, 429 if there are too many
// watchers, 503 if the server cannot be reached or the story or the session ends, or the server's own error. There is
// then no watcher. If ctx ends, the error is a 503, too, but the watch may still be opened.
func (s *Sandbox) AddWatcher(ctx context.Context, story *Run, options WatcherOptions) (WatcherInfo, Receipt, error) {
	added := s.watchers.make(options)
	added.story = story
	info := added.WatcherInfo // a copy, because follow may set the Error of added
	receipt, err := s.do(ctx, &order{name: "a watcher", story: story,
		do: func(ctx context.Context, begun func()) error { return s.open(ctx, added, begun) }})
	return info, receipt, err
}

// open is the command that opens a watcher, which follow then keeps open. It removes a watcher that is refused.
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

// check returns a 404 for an unknown resource, or a 429 if there are too many watchers.
func (w *watchers) check(options WatcherOptions) error {
	switch {
	case w.Pipeline.Server.Resource(options.Resource) == nil:
		return notFound("resources", short(options.Resource))
	case len(w.info()) >= maxWatchers:
		return apierrors.NewTooManyRequests(fmt.Sprintf("there are %d watchers: remove one", maxWatchers), 0)
	}
	return nil
}

// short returns at most the first 64 bytes of a client's text, without those that are not valid UTF-8.
func short(text string) string { return strings.ToValidUTF8(text[:min(len(text), 64)], "") }

// nextAgent returns the user agent for the page's next client.
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
		lister:          client.ListWatch(name, "", nil),
		resourceVersion: options.ResourceVersion,
	}
}

// RemoveWatcher closes a watch, without waiting for the watcher's goroutine. It returns a 404 for an unknown id.
func (s *Sandbox) RemoveWatcher(ctx context.Context, id string) error {
	_, err := s.do(ctx, &order{name: "the end of a watcher", do: func(context.Context, func()) error {
		if s.watchers.remove(func(each *watcher) bool { return each.ID == id }) == 0 {
			return notFound("watchers", short(id))
		}
		return nil
	}})
	return err
}

// remove closes the watches that meant accepts, and returns their number.
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
	s.config.Connections.breakAll(WatcherAgent)
}

// Watchers returns the watchers, oldest first. It may be called from any goroutine.
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

// follow keeps a watch open until ctx is done. The first stream is already open.
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

// begin sets ordered for a new stream: false for version "" or "0", because the server then begins with the state.
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
		options.AllowWatchBookmarks = true // marks the end of the current state
	}
	return each.lister.Watch(ctx, options)
}

// drain reads the stream to its end, and saves the version to resume from. It returns true if ctx is done.
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

// remember saves the resource version to resume from. While the current state arrives, it saves none: if the stream
// breaks, the next one begins with the state again.
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

// maxAsked is the maximum number of viewers' open requests.
const maxAsked = 16

// Ask sends a copy of a viewer's request as a separate client with a line of its own, like one of the page's watchers:
// knobs act on the line, and a reset breaks its watch. Ask replaces the copy's host and user agent, and returns when
// the response begins. The caller closes the response's body. Ask may be called from any goroutine. Errors: 429 if
// there are too many requests, 503 if the server cannot be reached.
func (s *Sandbox) Ask(r *http.Request) (*http.Response, error) {
	w := s.watchers
	if w.asked.Add(1) > maxAsked {
		w.asked.Add(-1)
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d consoles are open: end one", maxAsked), 0)
	}
	agent := w.nextAgent()
	over := sync.OnceFunc(func() {
		w.Connections.forget(agent)
		w.asked.Add(-1)
	})
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = s.config.Base.Scheme, s.config.Base.Host, ""
	r.Header.Set("User-Agent", agent)
	// http.Client.Do would follow redirects.
	response, err := w.Connections.RoundTrip(r)
	if err != nil {
		over()
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	response.Body = body{response.Body, over}
	return response, nil
}

// body is the body of the response to a viewer's request. Close calls over.
type body struct {
	io.ReadCloser
	over func()
}

func (b body) Close() error {
	defer b.over()
	return b.ReadCloser.Close()
}

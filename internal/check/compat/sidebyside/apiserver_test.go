package sidebyside

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// apiServer serves lists and watches of the pods in namespace default, as far as reflectors use them. A test can inject
// faults and read the requests.
type apiServer struct {
	mu       sync.Mutex
	cond     sync.Cond // on mu; signals each change
	rv       int
	oldest   int // watches from earlier versions get a 410
	pods     map[string]*corev1.Pod
	history  []watch.Event
	epoch    int            // watches of an older epoch end
	lastWord *metav1.Status // the object of the ERROR event that ends watches; nil: no event
	refuse   []error        // the errors of the next requests
	requests []string       // requests since the last call of asked
	holding  bool           // whether watches hold back events
}

func newAPIServer() *apiServer {
	s := &apiServer{pods: map[string]*corev1.Pod{}}
	s.cond.L = &s.mu
	return s
}

func podAt(name string, rv int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, ResourceVersion: strconv.Itoa(rv), Annotations: map[string]string{
			"written": strconv.Itoa(rv)},
	}}
}

// write applies a word: "+a" or "~a" creates or updates pod a, "-a" deletes it, "*" is a bookmark, "!" only raises rv.
func (s *apiServer) write(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(word)
	s.cond.Broadcast()
}

func (s *apiServer) writeLocked(word string) {
	name := word[1:]
	switch word[0] {
	case '!':
		s.rv++
	case '*':
		mark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.rv)}}
		s.history = append(s.history, watch.Event{Type: watch.Bookmark, Object: mark})
	case '+', '~':
		s.rv++
		typ := watch.Modified
		if s.pods[name] == nil {
			typ = watch.Added
		}
		s.pods[name] = podAt(name, s.rv)
		s.history = append(s.history, watch.Event{Type: typ, Object: s.pods[name]})
	case '-':
		if s.pods[name] == nil {
			return
		}
		s.rv++
		gone := podAt(name, s.rv)
		delete(s.pods, name)
		s.history = append(s.history, watch.Event{Type: watch.Deleted, Object: gone})
	default:
		panic("no such word: " + word)
	}
}

// cut ends all watches with lastWord, and applies words while none is open. With compact, older versions get a 410.
func (s *apiServer) cut(compact bool, lastWord *metav1.Status, words []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.lastWord = lastWord
	for _, word := range words {
		s.writeLocked(word)
	}
	if compact {
		s.rv++
		s.oldest = s.rv
	}
	s.cond.Broadcast()
}

// hold(true) makes watches hold back events until hold(false).
func (s *apiServer) hold(holding bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = holding
	s.cond.Broadcast()
}

// fail makes n later requests fail with err, after the failures that earlier calls have queued.
func (s *apiServer) fail(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.refuse = append(s.refuse, err)
	}
}

// failureNamed returns the error that a story calls name. It panics for an unknown name.
func failureNamed(name string) error {
	switch name {
	case "refused":
		return syscall.ECONNREFUSED
	case "429":
		return apierrors.NewTooManyRequests("slow down", 1)
	case "410":
		return apierrors.NewResourceExpired("too old resource version")
	case "500":
		return apierrors.NewInternalError(fmt.Errorf("no leader"))
	case "504":
		return apierrors.NewTimeoutError("Too large resource version", 1)
	case "403":
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", fmt.Errorf("no"))
	}
	panic("no such failure: " + name)
}

// asked returns the requests since the last call.
func (s *apiServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// admitLocked adds a request to requests, and removes and returns the next failure that fail has queued, or nil.
func (s *apiServer) admitLocked(verb string, opts metav1.ListOptions) error {
	s.requests = append(s.requests, fmt.Sprintf("%s rv=%q match=%q limit=%d initial=%v bookmarks=%v",
		verb, opts.ResourceVersion, opts.ResourceVersionMatch, opts.Limit, opts.SendInitialEvents != nil &&
			*opts.SendInitialEvents, opts.AllowWatchBookmarks))
	if len(s.refuse) == 0 {
		return nil
	}
	err := s.refuse[0]
	s.refuse = s.refuse[1:]
	return err
}

func (s *apiServer) List(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitLocked("list", opts); err != nil {
		return nil, err
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.rv)}}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		list.Items = append(list.Items, *s.pods[name])
	}
	return list, nil
}

func (s *apiServer) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitLocked("watch", opts); err != nil {
		return nil, err
	}
	w := &apiStream{apiServer: s, result: make(chan watch.Event), epoch: s.epoch, position: len(s.history)}
	if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		w.initial = s.initialLocked()
	} else if from, _ := strconv.Atoi(opts.ResourceVersion); from < s.oldest {
		status := apierrors.NewResourceExpired("too old resource version").Status()
		w.initial, w.epoch = []watch.Event{{Type: watch.Error, Object: &status}}, -1
	} else {
		w.position = s.after(from)
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.stopWaking = context.AfterFunc(w.ctx, s.wake)
	go w.run()
	return w, nil
}

func (s *apiServer) initialLocked() []watch.Event {
	var initial []watch.Event
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		initial = append(initial, watch.Event{Type: watch.Added, Object: s.pods[name]})
	}
	return append(initial, watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(s.rv), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}})
}

func (s *apiServer) after(rv int) int {
	for i, event := range s.history {
		if event.Type != watch.Bookmark && versionOf(event.Object) > rv {
			return i
		}
	}
	return len(s.history)
}

func (s *apiServer) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cond.Broadcast()
}

// apiStream is one watch of an apiServer.
type apiStream struct {
	apiServer  *apiServer
	ctx        context.Context
	cancel     context.CancelFunc
	stopWaking func() bool
	result     chan watch.Event // sent and closed by run; unbuffered, as a StreamWatcher's
	initial    []watch.Event
	epoch      int // the server's epoch at the start; -1: the stream ends after initial
	position   int
}

func (w *apiStream) ResultChan() <-chan watch.Event { return w.result }
func (w *apiStream) Stop()                          { w.cancel() }

func (w *apiStream) run() {
	defer close(w.result)
	defer w.cancel()
	for _, event := range w.initial {
		if !w.send(event) {
			return
		}
	}
	for {
		event, ok := w.next()
		if !ok || !w.send(event) || event.Type == watch.Error {
			return
		}
	}
}

func (w *apiStream) send(event watch.Event) bool {
	event.Object = event.Object.DeepCopyObject() // a copy, as if decoded
	select {
	case w.result <- event:
		return true
	case <-w.ctx.Done():
		return false
	}
}

func (w *apiStream) next() (watch.Event, bool) {
	s := w.apiServer
	s.mu.Lock()
	defer s.mu.Unlock()
	for w.epoch == s.epoch && w.ctx.Err() == nil && (s.holding || w.position == len(s.history)) {
		s.cond.Wait()
	}
	switch {
	case w.ctx.Err() != nil || w.epoch < 0:
		return watch.Event{}, false
	case w.epoch != s.epoch && s.lastWord == nil:
		return watch.Event{}, false
	case w.epoch != s.epoch:
		return watch.Event{Type: watch.Error, Object: s.lastWord}, true
	}
	w.position++
	return s.history[w.position-1], true
}

func versionOf(obj any) int {
	rv, _ := strconv.Atoi(obj.(metav1.Object).GetResourceVersion())
	return rv
}

func statusOf(name string) *metav1.Status {
	err, ok := failureNamed(name).(apierrors.APIStatus)
	if !ok {
		return nil
	}
	status := err.Status()
	return &status
}

package reflector

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// server is a ListerWatcher that does what its script says, one step per call, and writes down what it was asked.
// When the script is over, lists are empty and watches stay open.
type server struct {
	mu     sync.Mutex
	start  time.Time
	asked  []string // "1.2s list rv=0 limit=500"
	lists  []func(metav1.ListOptions) (runtime.Object, error)
	opens  []func(metav1.ListOptions) (watch.Interface, error)
	opened []*stream
}

func newServer() *server { return &server{start: time.Now()} }

func (s *server) onList(f ...func(metav1.ListOptions) (runtime.Object, error)) {
	s.lists = append(s.lists, f...)
}

func (s *server) onWatch(f ...func(metav1.ListOptions) (watch.Interface, error)) {
	s.opens = append(s.opens, f...)
}

func (s *server) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("list rv=%s limit=%d%s", options.ResourceVersion, options.Limit, suffix(" continue=", options.Continue))
	if len(s.lists) == 0 {
		return podList("1"), nil
	}
	next := s.lists[0]
	s.lists = s.lists[1:]
	return next(options)
}

func (s *server) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := "watch"
	if options.SendInitialEvents != nil {
		verb = "watchlist"
	}
	without := ""
	if !options.AllowWatchBookmarks {
		// which no client ever asks for: on a quiet resource they are all there is to go on from
		without = " without bookmarks"
	}
	s.note("%s rv=%s%s", verb, options.ResourceVersion, without)
	if len(s.opens) == 0 {
		return s.newStream(), nil
	}
	next := s.opens[0]
	s.opens = s.opens[1:]
	w, err := next(options)
	if opened, ok := w.(*stream); ok {
		s.opened = append(s.opened, opened)
	}
	return w, err
}

func (s *server) newStream() *stream {
	w := newStream()
	s.opened = append(s.opened, w)
	return w
}

func (s *server) note(format string, args ...any) {
	s.asked = append(s.asked, fmt.Sprintf("%v ", time.Since(s.start))+fmt.Sprintf(format, args...))
}

// log returns what was asked so far and forgets it.
func (s *server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := strings.Join(s.asked, "\n")
	s.asked = nil
	return asked
}

// last returns the newest stream.
func (s *server) last() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[len(s.opened)-1]
}

func suffix(name, value string) string {
	if value == "" {
		return ""
	}
	return name + value
}

// stream is one watch: unbuffered, as the real ones are.
type stream struct {
	result  chan watch.Event // sent and closed by the test
	stopped chan struct{}    // closed by Stop
	once    sync.Once
}

func newStream() *stream {
	return &stream{result: make(chan watch.Event), stopped: make(chan struct{})}
}

func (w *stream) ResultChan() <-chan watch.Event { return w.result }
func (w *stream) Stop()                          { w.once.Do(func() { close(w.stopped) }) }

func (w *stream) isStopped() bool {
	select {
	case <-w.stopped:
		return true
	default:
		return false
	}
}

func (w *stream) send(typ watch.EventType, obj runtime.Object) {
	w.result <- watch.Event{Type: typ, Object: obj}
}

// played returns a function for onWatch: a watch that sends events and then ends, after age.
func played(age time.Duration, events ...watch.Event) func(metav1.ListOptions) (watch.Interface, error) {
	return func(metav1.ListOptions) (watch.Interface, error) {
		w := &stream{result: make(chan watch.Event, len(events)), stopped: make(chan struct{})}
		for _, event := range events {
			w.result <- event
		}
		time.AfterFunc(age, func() { close(w.result) })
		return w, nil
	}
}

func refusing(err error) func(metav1.ListOptions) (watch.Interface, error) {
	return func(metav1.ListOptions) (watch.Interface, error) { return nil, err }
}

func failing(err error) func(metav1.ListOptions) (runtime.Object, error) {
	return func(metav1.ListOptions) (runtime.Object, error) { return nil, err }
}

func listing(list runtime.Object) func(metav1.ListOptions) (runtime.Object, error) {
	return func(metav1.ListOptions) (runtime.Object, error) { return list, nil }
}

// record is a Store that writes down what it is told.
type record struct {
	mu        sync.Mutex
	calls     []string
	resyncErr error
	refuses   error // what Add, Update and Delete of default/x return
}

func (s *record) refusal(obj any) error {
	if strings.HasPrefix(name(obj), "x") {
		return s.refuses
	}
	return nil
}

func (s *record) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// log returns what was told so far and forgets it.
func (s *record) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := strings.Join(s.calls, "; ")
	s.calls = nil
	return calls
}

func (s *record) Add(obj any) error    { s.note("add %s", name(obj)); return s.refusal(obj) }
func (s *record) Update(obj any) error { s.note("update %s", name(obj)); return s.refusal(obj) }
func (s *record) Delete(obj any) error { s.note("delete %s", name(obj)); return s.refusal(obj) }
func (s *record) Resync() error        { s.note("resync"); return s.resyncErr }

func (s *record) Replace(list []any, resourceVersion string) error {
	names := make([]string, len(list))
	for i, obj := range list {
		names[i] = name(obj)
	}
	s.note("replace %v at %s", names, resourceVersion)
	return nil
}

// curious is a record that wants bookmarks and versions too.
type curious struct{ record }

func (s *curious) Bookmark(rv string) error        { s.note("bookmark %s", rv); return nil }
func (s *curious) UpdateResourceVersion(rv string) { s.note("rv %s", rv) }

func name(obj any) string {
	pod := obj.(*corev1.Pod)
	return pod.Name + "@" + pod.ResourceVersion
}

func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: rv}}
}

func podList(rv string, pods ...*corev1.Pod) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: rv}}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	return list
}

func page(list *corev1.PodList, next string) *corev1.PodList {
	list.Continue = next
	return list
}

func event(typ watch.EventType, obj runtime.Object) watch.Event {
	return watch.Event{Type: typ, Object: obj}
}

func bookmark(rv string) watch.Event {
	return event(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: rv}})
}

func endOfInitialEvents(rv string) watch.Event {
	return event(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: rv, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}})
}

func errorEvent(err interface{ Status() metav1.Status }) watch.Event {
	status := err.Status()
	return event(watch.Error, &status)
}

// newTestReflector has no jitter.
func newTestReflector(s *server, store Store, change func(*Config)) *Reflector {
	config := Config{
		Name: "pods", ListerWatcher: s, Store: store, ExpectedType: &corev1.Pod{}, Clock: clock.RealClock{},
		Jitter: func() float64 { return 0 },
	}
	if change != nil {
		change(&config)
	}
	return New(config)
}

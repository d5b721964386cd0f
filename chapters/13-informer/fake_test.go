package informer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/routine"
)

// fakeServer is a ListerWatcher over a map and its whole history. Its watches deliver as fast as they are read.
type fakeServer struct {
	mu       sync.Mutex
	cond     sync.Cond // something happened
	rv       int
	oldest   int // watches from before it get 410
	pods     map[string]*corev1.Pod
	history  []watch.Event
	epoch    int // watches of an older epoch have been cut
	lists    int
	watches  int
	listErr  error
	watchErr error
}

var _ reflector.ListerWatcher = (*fakeServer)(nil)

func newFakeServer(pods ...string) *fakeServer {
	s := &fakeServer{pods: map[string]*corev1.Pod{}}
	s.cond.L = &s.mu
	for _, name := range pods {
		s.set(name)
	}
	return s
}

func pod(key, rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: key, ResourceVersion: rv}}
}

// set creates or updates a pod.
func (s *fakeServer) set(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	p := pod(name, strconv.Itoa(s.rv))
	typ := watch.Added
	if _, exists := s.pods[name]; exists {
		typ = watch.Modified
	}
	s.pods[name] = p
	s.history = append(s.history, watch.Event{Type: typ, Object: p})
	s.cond.Broadcast()
}

// delete deletes a pod, if it is there.
func (s *fakeServer) delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.pods[name]; !exists {
		return
	}
	s.rv++
	delete(s.pods, name)
	s.history = append(s.history, watch.Event{Type: watch.Deleted, Object: pod(name, strconv.Itoa(s.rv))})
	s.cond.Broadcast()
}

func (s *fakeServer) deletedAfter(name string, rv int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, event := range s.history {
		if event.Type == watch.Deleted && event.Object.(*corev1.Pod).Name == name && rvOf(event.Object) > rv {
			return true
		}
	}
	return false
}

// bookmark makes a bookmark of the current version.
func (s *fakeServer) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = append(s.history, watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.rv)}}})
	s.cond.Broadcast()
}

// cut ends all watches; with compact, they cannot be resumed.
func (s *fakeServer) cut(compact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	if compact {
		s.rv++ // another client's write
		s.oldest = s.rv
	}
	s.cond.Broadcast()
}

// fail makes every request fail with err, or none if it is nil.
func (s *fakeServer) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listErr, s.watchErr = err, err
}

func (s *fakeServer) counts() (lists, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.watches
}

func (s *fakeServer) state() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := map[string]string{}
	for _, p := range s.pods {
		state["default/"+p.Name] = p.ResourceVersion
	}
	return state
}

func (s *fakeServer) List(_ context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.listErr != nil {
		return nil, s.listErr
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.rv)}}
	for _, p := range s.sortedLocked() {
		list.Items = append(list.Items, *p)
	}
	return list, nil
}

func (s *fakeServer) sortedLocked() []*corev1.Pod {
	var names []string
	for name := range s.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	var pods []*corev1.Pod
	for _, name := range names {
		pods = append(pods, s.pods[name].DeepCopy())
	}
	return pods
}

func (s *fakeServer) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches++
	if s.watchErr != nil {
		return nil, s.watchErr
	}
	from, _ := strconv.Atoi(opts.ResourceVersion)
	var initial []watch.Event
	if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		for _, p := range s.sortedLocked() {
			initial = append(initial, watch.Event{Type: watch.Added, Object: p})
		}
		end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.rv),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}
		initial = append(initial, watch.Event{Type: watch.Bookmark, Object: end})
		from = s.rv
	} else if from < s.oldest {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.oldest))
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &fakeWatch{server: s, ctx: ctx, cancel: cancel, result: make(chan watch.Event), epoch: s.epoch, from: from}
	w.position = s.positionLocked(from)
	w.stopWaking = context.AfterFunc(ctx, s.wake)
	new(routine.Group).Go(context.Background(), "test.watch", func(context.Context) { w.run(initial) })
	return w, nil
}

// positionLocked returns the index of the first event of the history after rv.
func (s *fakeServer) positionLocked(rv int) int {
	for i, event := range s.history {
		if event.Type != watch.Bookmark && rvOf(event.Object) > rv {
			return i
		}
	}
	return len(s.history)
}

func (s *fakeServer) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cond.Broadcast()
}

type fakeWatch struct {
	server     *fakeServer
	ctx        context.Context
	cancel     context.CancelFunc
	stopWaking func() bool
	result     chan watch.Event // sent and closed by run
	epoch      int
	from       int
	position   int
}

func (w *fakeWatch) ResultChan() <-chan watch.Event { return w.result }
func (w *fakeWatch) Stop()                          { w.cancel() }

func (w *fakeWatch) run(initial []watch.Event) {
	defer close(w.result)
	defer w.cancel()
	for _, event := range initial {
		if !w.send(event) {
			return
		}
	}
	for {
		event, ok := w.next()
		if !ok || !w.send(event) {
			return
		}
	}
}

func (w *fakeWatch) send(event watch.Event) bool {
	event.Object = event.Object.DeepCopyObject()
	select {
	case w.result <- event:
		return true
	case <-w.ctx.Done():
		return false
	}
}

func (w *fakeWatch) next() (watch.Event, bool) {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for w.position == len(s.history) && w.epoch == s.epoch && w.ctx.Err() == nil {
		s.cond.Wait()
	}
	if w.epoch != s.epoch || w.ctx.Err() != nil {
		return watch.Event{}, false
	}
	w.position++
	return s.history[w.position-1], true
}

func rvOf(obj any) int {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	rv, _ := strconv.Atoi(accessor.GetResourceVersion())
	return rv
}

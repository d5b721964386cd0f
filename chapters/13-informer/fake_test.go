package informer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	reflector "listwatch/chapters/03-reflector"
)

// fakeServer is a ListerWatcher over a map and its whole history. Its watches deliver as fast as they are read.
type fakeServer struct {
	mu             sync.Mutex // guards the fields below
	rv             int
	oldest         int // watches from before it get 410
	pods           map[string]*corev1.Pod
	history        []watch.Event
	open           map[*fakeWatch]bool
	lists, watches int   // requests
	err            error // what every request gets
}

var _ reflector.ListerWatcher = (*fakeServer)(nil)

func newFakeServer(pods ...string) *fakeServer {
	s := &fakeServer{pods: map[string]*corev1.Pod{}, open: map[*fakeWatch]bool{}}
	for _, name := range pods {
		s.set(name)
	}
	return s
}

func pod(key, rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: key, ResourceVersion: rv}}
}

// tellLocked makes an event the newest of the history, and sends it to all open watches.
func (s *fakeServer) tellLocked(typ watch.EventType, obj *corev1.Pod) {
	s.history = append(s.history, watch.Event{Type: typ, Object: obj})
	for w := range s.open {
		w.send(s.history[len(s.history)-1])
	}
}

// set creates or updates a pod.
func (s *fakeServer) set(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	typ := watch.Added
	if s.pods[name] != nil {
		typ = watch.Modified
	}
	s.pods[name] = pod(name, strconv.Itoa(s.rv))
	s.tellLocked(typ, s.pods[name])
}

// delete deletes a pod, if it is there.
func (s *fakeServer) delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[name] != nil {
		s.rv++
		delete(s.pods, name)
		s.tellLocked(watch.Deleted, pod(name, strconv.Itoa(s.rv)))
	}
}

// cut ends all watches; with compact, they cannot be resumed.
func (s *fakeServer) cut(compact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.open {
		close(w.result)
	}
	clear(s.open)
	if compact {
		s.rv++ // another client's write
		s.oldest = s.rv
	}
}

// fail makes every request fail with err, or none if it is nil.
func (s *fakeServer) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *fakeServer) counts() (lists, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.watches
}

func (s *fakeServer) List(_ context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.rv)}}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		list.Items = append(list.Items, *s.pods[name].DeepCopy())
	}
	return list, s.err
}

func (s *fakeServer) Watch(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches++
	from, _ := strconv.Atoi(opts.ResourceVersion)
	streamed := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	switch {
	case s.err != nil:
		return nil, s.err
	case !streamed && from < s.oldest:
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.oldest))
	}
	w := &fakeWatch{server: s, result: make(chan watch.Event, len(s.pods)+len(s.history)+10_000)}
	if streamed {
		for _, name := range slices.Sorted(maps.Keys(s.pods)) {
			w.send(watch.Event{Type: watch.Added, Object: s.pods[name]})
		}
		w.send(watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.rv), Annotations: map[string]string{
				metav1.InitialEventsAnnotationKey: "true"}}}})
		from = s.rv
	}
	for _, event := range s.history {
		if int(storage.VersionOf(event.Object)) > from {
			w.send(event)
		}
	}
	s.open[w] = true
	return w, nil
}

// fakeWatch is one watch of a fakeServer.
type fakeWatch struct {
	server *fakeServer
	result chan watch.Event // sent and closed under the server's mu; never full
}

func (w *fakeWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *fakeWatch) Stop() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	delete(w.server.open, w)
}

func (w *fakeWatch) send(event watch.Event) {
	event.Object = event.Object.DeepCopyObject() // as if decoded
	w.result <- event
}

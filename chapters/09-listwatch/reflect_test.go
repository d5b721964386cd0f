package listwatch

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/routine"
)

// podServer is an API server with one pod, "a", at version 5, whose watches from 5 bring "b" at 6.
func podServer(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case query.Get("watch") == "":
		answer(200, "application/json", "", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},
			"items":[{"metadata":{"namespace":"default","name":"a","resourceVersion":"3"}}]}`)(w, r)
	case query.Get("resourceVersion") == "5":
		streaming(frame(watch.Added, pod("b", "6")))(w, r)
	default:
		streaming()(w, r)
	}
}

func TestReflectorOverHTTPOutlivesARestartOfTheServerWithoutAList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, podServer)
		store := &names{}
		stop := reflect(t, s, store)
		time.Sleep(10 * time.Second)
		s.stop()
		time.Sleep(5 * time.Second) // refused at 0, 0.8, 2.4 s
		s.run(podServer)
		time.Sleep(time.Minute) // accepted at 5.6 s
		stop()

		want := list + "\n0s " + watchFrom + "5" + lasting + "\n15.6s " + watchFrom + "6" + lasting
		assert.NoDiff(t, s.log(), want, "asked")
		assert.Equal(t, fmt.Sprint(store.told), "[replace a at 5 add b]", "store")
		s.wantServing(t, 0)
	})
}

// The eleven attempts of one watch take ten seconds. That is not a very short watch, so its end is no reason to list.
func TestReflectorWatchesAgainAfterElevenBrokenConnections(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, times(1, podServer, times(11, hangUp, podServer)))
		s.client.Transport.(*http.Transport).DisableKeepAlives = true // or the transport repeats a request by itself
		store := &names{}
		stop := reflect(t, s, store)
		time.Sleep(time.Minute)
		stop()

		want := list
		for attempt := range 11 {
			want += fmt.Sprintf("\n%ds %s5%s", attempt, watchFrom, lasting)
		}
		want += "\n10s " + watchFrom + "5" + lasting
		assert.NoDiff(t, s.log(), want, "asked")
		assert.Equal(t, fmt.Sprint(store.told), "[replace a at 5 add b]", "store")
		s.wantServing(t, 0)
	})
}

// What a reflector of pods asks for.
const (
	list      = "0s GET /api/v1/pods?limit=500&resourceVersion=0"
	watchFrom = "GET /api/v1/pods?allowWatchBookmarks=true&resourceVersion="
	lasting   = "&timeout=5m0s&timeoutSeconds=300&watch=true"
)

// reflect runs a reflector of the server's pods until stop is called.
func reflect(t *testing.T, s *server, store reflector.Store) (stop func()) {
	r := reflector.New(reflector.Config{
		Name: "pods", ListerWatcher: NewListWatch(s.rest(nil), "pods", "", nil), Store: store,
		ExpectedType: &corev1.Pod{}, Clock: clock.RealClock{}, Jitter: func() float64 { return 0 },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group routine.Group
	group.Go(ctx, "reflector.Run", r.Run)
	return func() { cancel(); group.Wait() }
}

// names is a Store that keeps the names it is told. The reflector calls it from one goroutine.
type names struct{ told []string }

func (s *names) Add(obj any) error {
	s.told = append(s.told, "add "+obj.(*corev1.Pod).Name)
	return nil
}
func (s *names) Update(obj any) error {
	s.told = append(s.told, "update "+obj.(*corev1.Pod).Name)
	return nil
}
func (s *names) Delete(obj any) error {
	s.told = append(s.told, "delete "+obj.(*corev1.Pod).Name)
	return nil
}
func (s *names) Resync() error { return nil }

func (s *names) Replace(list []any, resourceVersion string) error {
	for _, obj := range list {
		s.told = append(s.told, fmt.Sprintf("replace %s at %s", obj.(*corev1.Pod).Name, resourceVersion))
	}
	return nil
}

package listwatch

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/bubble"
	"listwatch/internal/routine"
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
		r := reflector.New(reflector.Config{
			Name: "pods", ListerWatcher: NewListWatch(s.rest(nil), "pods", "", nil), Store: store,
			ExpectedType: &corev1.Pod{}, Clock: clock.RealClock{}, Jitter: func() float64 { return 0 },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var group routine.Group
		group.Go(ctx, "reflector.Run", r.Run)
		time.Sleep(10 * time.Second)
		s.stop()
		time.Sleep(5 * time.Second) // refused at 0, 0.8, 2.4 s
		s.run(podServer)
		time.Sleep(time.Minute) // accepted at 5.6 s
		cancel()
		group.Wait()

		const parameters = "&timeout=5m0s&timeoutSeconds=300&watch=true"
		want := "0s GET /api/v1/pods?limit=500&resourceVersion=0\n" +
			"0s GET /api/v1/pods?allowWatchBookmarks=true&resourceVersion=5" + parameters + "\n" +
			"15.6s GET /api/v1/pods?allowWatchBookmarks=true&resourceVersion=6" + parameters
		if diff := cmp.Diff(want, s.log()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		if got := fmt.Sprint(store.told); got != "[replace a at 5 add b]" {
			t.Errorf("store: got %s", got)
		}
		s.wantServing(t, 0)
	})
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

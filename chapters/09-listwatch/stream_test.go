package listwatch

import (
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestWatchDeliversEventsAndStopEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, streaming(frame(watch.Added, pod("a", "1")), frame(watch.Deleted, pod("a", "2"))))
		lw := NewListWatch(s.rest(nil), "pods", "default", nil)
		seconds := int64(590)
		w, err := lw.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0", AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ADDED a@1", "DELETED a@2"} {
			if got := describe(<-w.ResultChan()); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		w.Stop()
		w.Stop()
		if event, ok := <-w.ResultChan(); ok {
			t.Errorf("after Stop: got %s, want a closed channel", describe(event))
		}
		want := "0s GET /api/v1/namespaces/default/pods?allowWatchBookmarks=true&resourceVersion=0&timeout=9m50s&timeoutSeconds=590&watch=true"
		if got := s.log(); got != want {
			t.Errorf("asked\n got %s\nwant %s", got, want)
		}
	})
}

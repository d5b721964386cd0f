package handlers

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// A connection whose read was made to fail, so that a stuck request ends, has no use for the requests that follow: they
// would be served with a context that is done. It must not be kept.
func TestAfterATimeoutTheNextRequestIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		healthy := a.handler
		stuck := true
		a.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !stuck {
				healthy.ServeHTTP(w, r)
				return
			}
			s := &Server{clock: clock.RealClock{}}
			s.limited(&statusRecorder{ResponseWriter: w}, r, func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				WriteError(w, r, r.Context().Err())
			})
		})
		client := a.serve()
		for _, want := range []int{504, 200} {
			response, err := client.Get("http://pipe/api/v1/pods")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body) // or the connection would not be kept
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("got %d, want %d", response.StatusCode, want)
			}
			stuck = false
			time.Sleep(time.Minute)
		}
	})
}

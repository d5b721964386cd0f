package pipenet

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"listwatch/internal/check/bubble"
)

func TestClientsReachTheServerThatIsThere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var n Network
		client := n.Client()
		defer client.CloseIdleConnections()
		for _, name := range []string{"first", "second"} {
			if _, err := client.Get("http://localhost/"); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("before the %s server: got %v, want refused", name, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := false // the stream's handler
			var serving sync.WaitGroup
			serving.Go(func() {
				n.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, name)
					_ = http.NewResponseController(w).Flush()
					if r.URL.Path == "/stream" {
						<-r.Context().Done()
						ended = true
					}
				}), func(err error) { t.Error(err) })
			})
			synctest.Wait()
			answer, err := client.Get("http://localhost/")
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(answer.Body); string(body) != name {
				t.Errorf("got %q from the %s server", body, name)
			}
			stream, err := client.Get("http://localhost/stream")
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			serving.Wait()
			if !ended {
				t.Errorf("the %s server has ended before its handler", name)
			}
			_ = stream.Body.Close()
		}
	})
}

package eventually

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAServerClosesAlthoughItsClientsComeBack checks that Closes returns while clients reconnect after each cut.
func TestAServerClosesAlthoughItsClientsComeBack(t *testing.T) {
	var streams atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	var watching sync.WaitGroup
	for range 8 {
		watching.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for {
				response, err := client.Get(server.URL)
				if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" {
					return // the server is closed
				} else if err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
			}
		})
	}
	Holds(t, "every client watches", func() bool { return streams.Load() >= 8 })
	var closed atomic.Bool
	go func() { Closes(server); closed.Store(true) }()
	Holds(t, "the server waits for no client", closed.Load)
	watching.Wait()
}

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
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAServerClosesAlthoughItsClientsComeBack has clients that watch again as soon as their streams are cut.
func TestAServerClosesAlthoughItsClientsComeBack(t *testing.T) {
	var streams atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	const clients = 8
	var watching sync.WaitGroup
	for range clients {
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
	Holds(t, "every client watches", func() bool { return streams.Load() >= clients })
	closed := make(chan struct{})
	go func() { defer close(closed); Closes(server) }()
	select {
	case <-closed:
		watching.Wait()
	case <-time.After(patience):
		t.Fatal("the server still waits for its clients")
	}
}

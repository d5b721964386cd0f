package pipenet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHTTPStreamsInABubble(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		listener := Listen()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for n := range 3 {
				fmt.Fprintf(w, "%d", n)
				http.NewResponseController(w).Flush()
				time.Sleep(time.Minute) // fake time: costs nothing
			}
		})}
		go server.Serve(listener)
		client := listener.Client()
		start := time.Now()
		response, err := client.Get("http://anywhere/")
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		assert.True(t, err == nil && string(body) == "012", "body: got %q, %v, want 012", body, err)
		assert.Equal(t, time.Since(start), 3*time.Minute, "elapsed on the bubble's clock")
		client.CloseIdleConnections()
		server.Close()
	})
}

func TestDialAfterCloseIsRefused(t *testing.T) {
	listener := Listen()
	listener.Close()
	_, err := listener.Dial(context.Background(), "", "")
	assert.True(t, errors.Is(err, syscall.ECONNREFUSED), "Dial: got %v, want connection refused", err)
	_, err = listener.Accept()
	assert.True(t, errors.Is(err, net.ErrClosed), "Accept: got %v, want net.ErrClosed", err)
}

func TestDialGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Listen().Dial(ctx, "", "")
	assert.True(t, errors.Is(err, context.Canceled), "Dial: got %v, want context.Canceled", err)
}

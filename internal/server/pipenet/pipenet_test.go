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

	"listwatch/internal/check/bubble"
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
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || string(body) != "012" {
			t.Errorf("body: got %q, %v, want 012", body, err)
		}
		if elapsed := time.Since(start); elapsed != 3*time.Minute {
			t.Errorf("elapsed on the bubble's clock: got %v, want 3m", elapsed)
		}
		client.CloseIdleConnections()
		server.Close()
	})
}

func TestDialAfterCloseIsRefused(t *testing.T) {
	listener := Listen()
	listener.Close()
	if _, err := listener.Dial(context.Background(), "", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial: got %v, want connection refused", err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: got %v, want net.ErrClosed", err)
	}
}

func TestDialGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Listen().Dial(ctx, "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Dial: got %v, want context.Canceled", err)
	}
}

package handlers

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/pipenet"
)

// openWebsocket returns a client's websocket to a server that serves it with serve.
func openWebsocket(t *testing.T, serve func(context.Context, *wsStream)) *websocket.Conn {
	listener := pipenet.Listen()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stream := upgrade(w, r, clock.RealClock{})
		if stream != nil {
			serve(ctx, stream)
		}
	})}
	var group routine.Group
	group.Go(t.Context(), "test.server", func(context.Context) { _ = server.Serve(listener) })
	t.Cleanup(func() { _ = server.Close(); group.Wait(); synctest.Wait() })
	dialer := websocket.Dialer{NetDialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return listener.Client().Transport.(*http.Transport).DialContext(ctx, network, address)
	}}
	conn, _, err := dialer.DialContext(t.Context(), "ws://pipe/", nil)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestEachWriteIsAMessageAndTheEndSaysWhy(t *testing.T) {
	for goingAway, code := range map[bool]int{true: websocket.CloseGoingAway, false: websocket.CloseNormalClosure} {
		bubble.Test(t, func(t *testing.T) {
			conn := openWebsocket(t, func(_ context.Context, s *wsStream) {
				for _, text := range []string{"a", "b"} {
					n, err := s.Write([]byte(text))
					assert.True(t, n == 1 && err == nil, "got %d, %v", n, err)
				}
				s.Close("enough", goingAway)
			})
			for _, want := range []string{"a", "b"} {
				_, got, err := conn.ReadMessage()
				assert.Equal(t, string(got), want, "got %q, %v, want %q", got, err, want)
			}
			if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, code) || !strings.Contains(err.Error(),
				"enough") {
				t.Errorf("the end: got %v", err)
			}
		})
	}
}

func TestTheContextEndsWithTheClient(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ended := false
		conn := openWebsocket(t, func(ctx context.Context, s *wsStream) {
			<-ctx.Done()
			ended = true
			s.Close("", false)
		})
		conn.Close()
		synctest.Wait()
		assert.True(t, ended, "the stream goes on")
	})
}

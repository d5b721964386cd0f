package pipenet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDialAfterCloseIsRefused(t *testing.T) {
	listener := Listen()
	listener.Close()
	_, err := listener.Dial(t.Context(), "", "")
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

func TestClientsReachTheServerThatIsThere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var n Network
		client := n.Client()
		defer client.CloseIdleConnections()
		for _, name := range []string{"first", "second"} {
			_, err := client.Get("http://localhost/")
			assert.True(t, errors.Is(err, syscall.ECONNREFUSED), "before the %s server: got %v", name, err)
			ended := false // whether the stream's handler has ended
			stop := bubble.Go(t, "test.serve", func(ctx context.Context) {
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
			answer := require.Value(client.Get("http://localhost/"))(t)
			body, _ := io.ReadAll(answer.Body)
			assert.True(t, string(body) == name, "got %q from the %s server", body, name)
			stream := require.Value(client.Get("http://localhost/stream"))(t)
			stop()
			assert.True(t, ended, "the %s server has ended before its handler", name)
			_ = stream.Body.Close()
		}
	})
}

// TestABufferedLineHoldsWhatASocketWould expects that a handler can write 16 KB to a client that reads nothing, and
// then as much as the client reads. The handler ends when the client closes the body.
func TestABufferedLineHoldsWhatASocketWould(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var n Network
		var written atomic.Int64
		bubble.Go(t, "test.serve", func(ctx context.Context) {
			n.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for piece := make([]byte, 1<<10); ; written.Add(1 << 10) {
					if _, err := w.Write(piece); err != nil || http.NewResponseController(w).Flush() != nil {
						return
					}
				}
			}), func(err error) { t.Error(err) })
		})
		synctest.Wait()
		_, client := n.Lines()
		answer := require.Value(client.Get("http://localhost/"))(t)
		synctest.Wait()
		before := written.Load()
		assert.True(t, before >= socketBuffers && before < socketBuffers+8<<10, "%d bytes were written unread", before)
		_ = require.Value(io.CopyN(io.Discard, answer.Body, socketBuffers/2))(t)
		synctest.Wait()
		assert.Equal(t, socketBuffers/2, written.Load()-before, "bytes that follow what was read")
		assert.NoError(t, answer.Body.Close())
	})
}

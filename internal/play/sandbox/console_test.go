package sandbox

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// watches watches pods, as the page's console does.
func (w *world) watches(t *testing.T, ctx context.Context) (*http.Response, error) {
	t.Helper()
	r := require.Value(http.NewRequestWithContext(ctx, "GET",
		"/api/v1/namespaces/default/pods?watch=true", nil))(t)
	r.Close = true
	return w.Ask(r)
}

func TestAResetEndsWhatConsolesHaveAsked(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range maxAsked {
			answer := require.Value(w.watches(t, ctx))(t)
			defer answer.Body.Close()
		}
		assert.Fails(t, assert.ErrorOf(w.watches(t, ctx)), apierrors.IsTooManyRequests, "one more")
		cancel()
		synctest.Wait()
	})
	inWorld(t, nil, func(t *testing.T, w *world) {
		answer := require.Value(w.watches(t, t.Context()))(t)
		require.Value(w.Reset(t.Context()))(t)
		_, err := io.ReadAll(answer.Body)
		assert.Equal(t, io.ErrUnexpectedEOF, err, "the end of the answer")
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, 0, w.watchers.asked.Load(), "open requests")
		assert.Equal(t, Connection{}, w.config.Connections.of(answer.Request.UserAgent()), "its line")
	})
}

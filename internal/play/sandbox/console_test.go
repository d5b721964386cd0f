package sandbox

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// asks sends a request as the page's console does.
func (w *world) asks(t *testing.T, ctx context.Context, path string) (*http.Response, error) {
	t.Helper()
	r := require.Value(http.NewRequestWithContext(ctx, "GET", path, nil))(t)
	r.Close = true
	return w.Ask(r)
}

const watchPods = "/api/v1/namespaces/default/pods?watch=true"

func TestAConsoleThatStopsReadingIsEvicted(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		answer := require.Value(w.asks(t, t.Context(), watchPods))(t)
		defer answer.Body.Close()
		agent := answer.Request.UserAgent()
		assert.True(t, strings.HasPrefix(agent, WatcherAgent), "it calls itself %s", agent)
		w.turn(t, "line.stall", agent, "true")
		w.turn(t, "traffic.rate", "", "20")
		time.Sleep(time.Minute)
		w.turn(t, "traffic.rate", "", "0")
		w.turn(t, "line.stall", agent, "false")
		rest, err := io.ReadAll(answer.Body)
		assert.NoError(t, err, "the end of the answer")
		evicted := 0
		for r := range w.log.Between(w.log.Oldest(), w.log.Last()+1) {
			if r.Point == probe.WatcherForced {
				evicted++
			}
		}
		frames := strings.Count(string(rest), "\n")
		assert.True(t, evicted == 1 && frames > 0 && frames < 200, "evicted %d times, with %d frames", evicted, frames)
	})
}

func TestAResetEndsWhatConsolesHaveAsked(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range maxAsked {
			answer := require.Value(w.asks(t, ctx, watchPods))(t)
			defer answer.Body.Close()
		}
		_, err := w.asks(t, ctx, watchPods)
		assert.Fails(t, err, apierrors.IsTooManyRequests, "one more")
		cancel()
		synctest.Wait()
	})
	inWorld(t, nil, func(t *testing.T, w *world) {
		answer, err := w.asks(t, t.Context(), watchPods)
		require.NoError(t, err)
		_, err = w.Reset(t.Context())
		require.NoError(t, err)
		_, err = io.ReadAll(answer.Body)
		assert.Equal(t, io.ErrUnexpectedEOF, err, "the end of the answer")
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, 0, w.watchers.asked.Load(), "open requests")
		assert.Equal(t, Connection{}, w.connections.of(answer.Request.UserAgent()), "its line")
	})
}

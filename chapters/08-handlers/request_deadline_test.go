package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/pipenet"
)

// askTwice serves the first request with handler, under a deadline of a minute, and those after it at once. It returns
// the codes of two requests over one client; 0 is a connection that was cut.
func askTwice(t *testing.T, handler http.HandlerFunc) (codes [2]int) {
	listener := pipenet.Listen()
	asked := New(Config{Clock: clock.RealClock{}})
	first := true
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !first {
			return
		}
		first = false
		ctx, done := asked.withDeadline(w, r, time.Minute, false)
		defer done()
		handler(w, r.WithContext(ctx))
	})}
	var group routine.Group
	group.Go(t.Context(), "test.server", func(context.Context) { _ = server.Serve(listener) })
	client := listener.Client()
	for i := range codes {
		response, err := client.Get("http://pipe/")
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body) // or the connection would not be kept
		response.Body.Close()
		codes[i] = response.StatusCode
	}
	client.CloseIdleConnections()
	_ = server.Close()
	group.Wait()
	synctest.Wait()
	return codes
}

// A connection whose read was made to fail, so that a stuck request ends, has no use for the requests that follow: they
// would be served with a context that is done. It must not be kept.
func TestAfterADeadlineTheNextRequestIsServed(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   [2]int
	}{
		"it says so in its header": {func(w http.ResponseWriter) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(504)
		}, [2]int{504, 200}},
		"it says nothing": {func(http.ResponseWriter) {}, [2]int{0, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				started := time.Now()
				got := askTwice(t, func(w http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					if !errors.Is(context.Cause(r.Context()), errDeadlineExceeded) ||
						time.Since(started) != time.Minute {
						t.Errorf("after %v: got %v", time.Since(started), context.Cause(r.Context()))
					}
					c.answer(w)
				})
				assert.Equal(t, got, c.want)
			})
		})
	}
}

func TestADeadlineThatIsNotReachedLeavesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		assert.Equal(t, askTwice(t, func(http.ResponseWriter, *http.Request) {}), [2]int{200, 200})
	})
}

package handlers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// next returns the next frame of a stream.
func next(t *testing.T, lines *bufio.Scanner) frame {
	t.Helper()
	require.True(t, lines.Scan(), "the stream ended: %v", lines.Err())
	var f frame
	err := json.Unmarshal(lines.Bytes(), &f)
	require.True(t, err == nil, "line %q: %v", lines.Text(), err)
	return f
}

func TestDeprecatedWatchPathsWatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		client := a.serve()
		a.Create(podA)
		for _, path := range []string{"/api/v1/watch/pods", "/api/v1/watch/namespaces/default/pods",
			"/api/v1/watch/namespaces/default/pods/a"} {
			response := require.Value(client.Get("http://api" + path + "?resourceVersion=0&timeoutSeconds=1"))(t)
			assert.Equal(t, watch.Added, next(t, bufio.NewScanner(response.Body)).Type, path)
			response.Body.Close()
		}
	})
}

func TestTheProbesTellTheStoryOfAStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		client := a.serve()
		a.Create(podA)
		path := podsPath + "?watch=1&timeoutSeconds=1"
		response := require.Value(client.Get("http://api" + path))(t)
		require.Value(io.ReadAll(response.Body))(t)
		synctest.Wait()
		want := []string{
			"PredicateChosen everything under /registry/pods/default/ default",
			"WireOpened Go-http-client/1.1 " + path,
			"ResultReceived ADDED default/a",
			"FrameWritten ADDED default/a",
			"WireClosed timeoutSeconds is over",
		}
		got := a.recorded(probe.PredicateChosen, probe.WireOpened, probe.ResultReceived, probe.FrameWritten,
			probe.WireClosed)
		assert.EqualSlices(t, want, got, "got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		requests := a.recorded(probe.RequestReceived, probe.RequestAnswered)
		if want := []string{
			"RequestReceived POST " + podsPath, "RequestAnswered POST " + podsPath,
			"RequestReceived GET " + path + " by Go-http-client", "RequestAnswered GET " + path,
		}; !slices.Equal(requests, want) {
			t.Errorf("requests: got %v, want %v", requests, want)
		}
	})
}

func TestWhoAsksForTheFutureIsToldWhenToComeAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newCachedAPI(t).Do("GET", podsPath+"?resourceVersion=999999999", "")
		wantStatus(t, w, 504, metav1.StatusReasonTimeout)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
	})
}

func TestEveryEndOfAStreamStopsTheWatch(t *testing.T) {
	for _, c := range []struct {
		name    string
		sockets []bool
		end     func(h *hanging)
	}{
		{"the client goes", []bool{false, true}, func(h *hanging) { h.leave() }},
		{"the client says so", []bool{true}, func(h *hanging) { _ = h.conn.WriteMessage(websocket.CloseMessage, nil) }},
		{"the server shuts down", []bool{false, true}, func(h *hanging) { close(h.shutdown) }},
		{"time is over", []bool{false, true}, func(*hanging) { time.Sleep(time.Hour) }},
		{"the watch ends", []bool{false, true}, func(h *hanging) { h.watching.Stop() }},
		{"no client reads", []bool{true}, func(h *hanging) {
			h.watching.Add(&corev1.Pod{})
			time.Sleep(time.Hour + 2*writeGrace)
		}},
	} {
		for _, socket := range c.sockets {
			bubble.Run(t, fmt.Sprint(c.name, ", websocket ", socket), func(t *testing.T) {
				h := hang(t, socket)
				c.end(h)
				time.Sleep(3 * goodbyeTime)
				synctest.Wait()
				assert.True(t, h.watching.IsStopped(), "the watch goes on")
			})
		}
	}
}

package handlers

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// dial opens a websocket to the API, over a pipe.
func dial(t *testing.T, client *http.Client, path string, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	dialer := websocket.Dialer{NetDialContext: client.Transport.(*http.Transport).DialContext}
	return dialer.DialContext(t.Context(), "ws://api"+path, header)
}

func mustDial(t *testing.T, client *http.Client, path string) *websocket.Conn {
	t.Helper()
	conn, _, err := dial(t, client, path, nil)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestAWebsocketGetsOneMessageForEachEvent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		conn := mustDial(t, a.serve(), podsPath+"?watch=1&timeoutSeconds=60")
		a.Create(podA)
		require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte("what a client says is ignored")))
		a.Do("DELETE", podsPath+"/a", "")
		var got []watch.EventType
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil {
				assert.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure) &&
					strings.Contains(err.Error(), "timeoutSeconds is over"), "the end: got %v", err)
				break
			}
			assert.True(t, kind == websocket.TextMessage && strings.Count(string(message), "\n") == 1,
				"got message of type %d: %q", kind, message)
			f := into[frame](t, strings.NewReader(string(message)))
			got = append(got, f.Type)
		}
		assert.EqualSlices(t, []watch.EventType{watch.Added, watch.Modified, watch.Deleted}, got)
		synctest.Wait()
		assert.Equal(t, 2, len(a.recorded(probe.WireOpened, probe.WireClosed)), "probes")
	})
}

// TestAStreamThatEndsWithTheServerSaysSo lets the requests' contexts end, too, as when a server is shut down.
func TestAStreamThatEndsWithTheServerSaysSo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		ctx, cancel := context.WithCancel(t.Context())
		client := a.serveUntil(ctx)
		conn := mustDial(t, client, podsPath+"?watch=1")
		response := require.Value(client.Get("http://api" + podsPath + "?watch=1"))(t)
		defer response.Body.Close()
		synctest.Wait()
		close(a.shutdown)
		cancel()
		_, _, err := conn.ReadMessage()
		assert.True(t, websocket.IsCloseError(err, websocket.CloseGoingAway) &&
			strings.Contains(err.Error(), "the server shuts down"), "the websocket's end: got %v", err)
		_, err = io.Copy(io.Discard, response.Body)
		assert.True(t, err == nil, "the other stream's end: got %v", err)
		synctest.Wait()
		got, want := a.recorded(probe.WireClosed),
			[]string{"WireClosed the server shuts down", "WireClosed the server shuts down"}
		assert.True(t, slices.Equal(got, want), "got %q", got)
	})
}

func TestAPageFromElsewhereGetsNoWebsocket(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client := newCachedAPI(t).serve()
		_, response, err := dial(t, client, podsPath+"?watch=1", http.Header{"Origin": {"https://elsewhere.test"}})
		require.True(t, err != nil && response.StatusCode == http.StatusForbidden, "got %v, %v", response, err)
		status := into[metav1.Status](t, response.Body)
		assert.True(t, status.Code == 403 && status.Reason == metav1.StatusReasonForbidden, "got %+v", status)
	})
}

// A page cannot set headers of a websocket, so it sends its token as a subprotocol; and a
// browser fails unless the server answers with one of those that the page has named.
func TestAWebsocketsSubprotocolIsAnswered(t *testing.T) {
	const bearer = "base64url.bearer.authorization.k8s.io.dG9rZW4"
	bubble.Test(t, func(t *testing.T) {
		client := newCachedAPI(t).serve()
		for _, c := range []struct {
			protocols []string // headers
			code      int
			want      string
		}{
			{nil, 101, ""},
			{[]string{"base64.binary.k8s.io"}, 101, "base64.binary.k8s.io"},
			{[]string{bearer + ", base64.binary.k8s.io"}, 101, "base64.binary.k8s.io"},
			{[]string{"anything", bearer}, 101, "anything"},
			{[]string{"one, two"}, 400, ""},
			{[]string{bearer}, 401, ""},
			{[]string{bearer, bearer, "one"}, 401, ""},
		} {
			conn, response, err := dial(t, client, podsPath+"?watch=1&timeoutSeconds=1",
				http.Header{"Sec-Websocket-Protocol": c.protocols})
			require.True(t, response != nil && response.StatusCode == c.code, "%q: got %v, %v",
				c.protocols, response, err)
			if err != nil {
				assert.Equal(t, c.code, int(into[metav1.Status](t, response.Body).Code))
				continue
			}
			assert.Equal(t, c.want, conn.Subprotocol(), "%q", c.protocols)
			kind, _, err := conn.ReadMessage() // text, whatever the name of the protocol promises
			assert.True(t, kind == websocket.TextMessage || websocket.IsCloseError(err, websocket.CloseNormalClosure),
				"%q: got %v %v", c.protocols, kind, err)
			conn.Close()
		}
	})
}

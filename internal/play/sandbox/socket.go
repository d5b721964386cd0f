package sandbox

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/runtime"
)

// dialFunc opens a connection, as that of an http.Transport does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialOf returns how a client dials, so that what others have put around its connections is around a websocket's, too.
func dialOf(client *http.Client) dialFunc {
	if transport, ok := client.Transport.(*http.Transport); ok && transport.DialContext != nil {
		return transport.DialContext
	}
	return (&net.Dialer{}).DialContext
}

// socketTransport sends a watch over a websocket, as dashboards do that run in a browser. To the caller, the answer
// looks like any other: the messages one after the other. Everything but a watch it is not made for.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: (*WatchServer).HandleWS
// Differs: the other end of it; client-go itself never watches over a websocket.
type socketTransport struct {
	dial dialFunc
}

var _ http.RoundTripper = (*socketTransport)(nil)

// RoundTrip asks for the upgrade. If that is refused, the answer is the server's refusal.
func (t *socketTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	dialer := websocket.Dialer{NetDialContext: t.dial}
	header := http.Header{"User-Agent": {request.UserAgent()}}
	conn, response, err := dialer.DialContext(request.Context(), socketURL(request.URL).String(), header)
	if err != nil {
		if response != nil {
			return response, nil
		}
		return nil, err
	}
	body := &socketBody{conn: conn, messages: websocket.JoinMessages(conn, "")}
	body.stopEnding = context.AfterFunc(request.Context(), func() { _ = conn.Close() })
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: body, Request: request,
	}, nil
}

func socketURL(from *url.URL) *url.URL {
	to := *from
	to.Scheme = map[string]string{"http": "ws", "https": "wss"}[from.Scheme]
	return &to
}

// socketBody is the messages of a websocket as one stream.
type socketBody struct {
	conn       *websocket.Conn
	messages   io.Reader // one after the other
	stopEnding func() bool
}

// Read reads on. What the server's goodbye is to a websocket, the end is to a chunked answer.
func (b *socketBody) Read(p []byte) (int, error) {
	n, err := b.messages.Read(p)
	if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
		err = io.EOF
	}
	return n, err
}

// Close ends the connection, also below a reader that waits.
func (b *socketBody) Close() error {
	b.stopEnding()
	return b.conn.Close()
}

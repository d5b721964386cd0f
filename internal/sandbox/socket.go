package sandbox

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"

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
	body := &socketBody{conn: conn}
	body.stopEnding = context.AfterFunc(request.Context(), body.end)
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: response.Proto, ProtoMajor: response.ProtoMajor, ProtoMinor: response.ProtoMinor,
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
	// Set by RoundTrip, never changed.
	conn       *websocket.Conn
	stopEnding func() bool
	ending     sync.Once

	// Owned by the reader.
	message io.Reader // nil: between two messages
}

// Read reads from the message at hand, or waits for the next one.
func (b *socketBody) Read(p []byte) (int, error) {
	for {
		if b.message == nil {
			_, message, err := b.conn.NextReader()
			if err != nil {
				return 0, endOf(err)
			}
			b.message = message
		}
		n, err := b.message.Read(p)
		if err == io.EOF {
			b.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// endOf makes of the server's goodbye what the end of a chunked answer is.
func endOf(err error) error {
	if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
		return io.EOF
	}
	return err
}

// Close ends the connection, also below a reader that waits.
func (b *socketBody) Close() error {
	b.stopEnding()
	b.end()
	return nil
}

func (b *socketBody) end() { b.ending.Do(func() { _ = b.conn.Close() }) }

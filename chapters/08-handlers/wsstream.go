package handlers

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"listwatch/internal/kube/negotiation"
	"listwatch/internal/observe/routine"
)

// wsStream is the server's end of a websocket. It sends each frame as one message. One goroutine writes to it.
type wsStream struct {
	conn     *websocket.Conn
	patience clock.Clock        // of the client's socket
	gone     context.CancelFunc // called when the client is gone
	group    routine.Group
}

// wantsWebsocket reports whether the client asks for a websocket.
func wantsWebsocket(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// upgrade turns a request into a websocket, or refuses it and returns nil. It refuses a page of another site that makes
// a browser connect here. The context ends when the client is gone; the caller must close the stream.
//
// The stream reads what the client sends, and ignores it. That is the only way to learn that the client has gone,
// because net/http no longer looks after a connection that has become a websocket.
func upgrade(w http.ResponseWriter, r *http.Request, patience clock.Clock) (context.Context, *wsStream) {
	header := http.Header{}
	protocol, err := subprotocol(r)
	if err != nil {
		WriteError(w, r, err)
		return nil, nil
	}
	if protocol != "" {
		header.Set(protocolHeader, protocol)
	}
	upgrader := websocket.Upgrader{Error: refuseWebsocket}
	conn, err := upgrader.Upgrade(w, r, header)
	if err != nil {
		return nil, nil
	}
	ctx, gone := context.WithCancel(r.Context())
	s := &wsStream{conn: conn, patience: patience, gone: gone}
	s.group.Go(ctx, "watchServer.ignoreReceives", s.ignoreReceives)
	return ctx, s
}

const (
	protocolHeader = "Sec-Websocket-Protocol"
	// bearerProtocolPrefix begins a subprotocol that is a token: a page cannot set other headers of a websocket.
	bearerProtocolPrefix = "base64url.bearer.authorization.k8s.io."
)

// subprotocol returns the subprotocol that the client names besides a token, or "" if it names none. A browser fails
// unless the answer repeats that name; the messages do not depend on it. Errors: 400 for more than one, 401 for a token
// without one, or for two tokens.
//
// Upstream: k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go: ProtocolAuthenticator
// Differs: every token is accepted.
func subprotocol(r *http.Request) (string, error) {
	var named, tokens []string
	for _, value := range r.Header.Values(protocolHeader) {
		for protocol := range strings.SplitSeq(value, ",") {
			protocol = strings.TrimSpace(protocol)
			if strings.HasPrefix(protocol, bearerProtocolPrefix) {
				tokens = append(tokens, protocol)
			} else if protocol != "" {
				named = append(named, protocol)
			}
		}
	}
	switch {
	case len(tokens) > 1:
		return "", apierrors.NewUnauthorized("multiple base64.bearer.authorization tokens specified")
	case len(named) > 1:
		return "", apierrors.NewBadRequest("a websocket has one subprotocol, besides a token")
	case len(named) == 1:
		return named[0], nil
	case len(tokens) == 1:
		return "", apierrors.NewUnauthorized("missing additional subprotocol")
	default:
		return "", nil
	}
}

func refuseWebsocket(w http.ResponseWriter, r *http.Request, code int, reason error) {
	WriteError(w, r, negotiation.Refusal(code, "%v", reason))
}

// Write sends one message: the encoder writes each frame at once.
func (s *wsStream) Write(p []byte) (int, error) {
	if err := s.conn.WriteMessage(websocket.TextMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush has nothing to do: a message is sent when it is written.
func (s *wsStream) Flush() error { return nil }

// ignoreReceives runs until either side closes the connection.
//
// Upstream: k8s.io/streaming/pkg/httpstream/wsstream/conn.go: IgnoreReceivesWithLogger
func (s *wsStream) ignoreReceives(context.Context) {
	defer s.gone()
	for {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}

// goodbyeTime is the time in which a client may read why the stream ends, by a clock that does not stop with the world.
const goodbyeTime = time.Second

// Close sends the reason, if the client listens, and closes the connection: 1001 if the whole server ends, else 1000.
// It returns when nothing of the stream is left.
func (s *wsStream) Close(reason string, goingAway bool) {
	code := websocket.CloseNormalClosure
	if goingAway {
		code = websocket.CloseGoingAway
	}
	said := make(chan struct{}) // closed by the goroutine when the message is written, or cannot be
	s.group.Go(context.Background(), "watchServer.sayGoodbye", func(context.Context) {
		message := websocket.FormatCloseMessage(code, reason)
		_ = s.conn.WriteControl(websocket.CloseMessage, message, time.Time{})
		close(said)
	})
	timer := s.patience.NewTimer(goodbyeTime)
	defer timer.Stop()
	select {
	case <-said:
	case <-timer.C():
	}
	_ = s.conn.Close() // ends both goroutines
	s.group.Wait()
}

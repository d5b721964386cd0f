package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"listwatch/internal/routine"
)

// upgrader turns a request into a websocket. A page from elsewhere that makes a browser connect here is refused.
var upgrader = websocket.Upgrader{Error: refuseWebsocket}

func refuseWebsocket(w http.ResponseWriter, r *http.Request, code int, reason error) {
	why := metav1.StatusReasonBadRequest
	if code == http.StatusForbidden {
		why = metav1.StatusReasonForbidden
	}
	WriteError(w, r, newStatusError(int32(code), why, reason.Error()))
}

// HandleWS sends events as the messages of a websocket, one each, until the watch ends, the time is over, the client
// closes or goes away, or the server shuts down. What the client sends is read and ignored: to read it is the only
// way to learn that it has gone, because net/http no longer looks after a connection that has become a websocket.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: (*WatchServer).HandleWS
// Differs: ends with the server, too, counts its events, and says goodbye with a close message: 1001 if the server ends, else 1000.
func (s *WatchServer) HandleWS(w http.ResponseWriter, r *http.Request) {
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the client was told by refuseWebsocket
	}
	ctx, gone := context.WithCancel(r.Context())
	defer gone()
	socket := &websocketStream{conn: conn, clock: s.scope.server.clock, gone: gone}
	socket.group.Go(ctx, "watchServer.ignoreReceives", socket.ignoreReceives)
	s.run(ctx, r, socket)
}

// websocketStream is the [stream] of a websocket.
type websocketStream struct {
	conn  *websocket.Conn
	clock clock.WithTicker
	gone  context.CancelFunc // called when the client is
	group routine.Group
}

var _ stream = (*websocketStream)(nil)

// Write sends one message: the encoder writes each frame at once.
func (s *websocketStream) Write(p []byte) (int, error) {
	if err := s.conn.WriteMessage(websocket.TextMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush has nothing to do: a message is sent when it is written.
func (s *websocketStream) flush() error { return nil }

// ignoreReceives runs until the connection is closed, by whichever side.
//
// Upstream: k8s.io/streaming/pkg/httpstream/wsstream/conn.go: IgnoreReceivesWithLogger
func (s *websocketStream) ignoreReceives(context.Context) {
	defer s.gone()
	for {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}

// goodbyeTime is how long a client may take to read why the stream ends.
const goodbyeTime = time.Second

// close says why, if the client listens, and closes the connection. It returns when nothing of the stream is left.
func (s *websocketStream) close(why ending) {
	code := websocket.CloseNormalClosure
	if why.goingAway {
		code = websocket.CloseGoingAway
	}
	said := make(chan struct{}) // closed by the goroutine when the message is written, or cannot be
	s.group.Go(context.Background(), "watchServer.sayGoodbye", func(context.Context) {
		message := websocket.FormatCloseMessage(code, why.reason)
		_ = s.conn.WriteControl(websocket.CloseMessage, message, time.Time{})
		close(said)
	})
	timer := s.clock.NewTimer(goodbyeTime)
	defer timer.Stop()
	select {
	case <-said:
	case <-timer.C():
	}
	_ = s.conn.Close() // ends both goroutines
	s.group.Wait()
}

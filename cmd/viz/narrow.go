package main

import (
	"context"
	"net"
	"net/http"
	"strings"

	pipeline "listwatch/chapters/15-pipeline"
)

// socketBuffer is how much the network itself keeps of what nobody reads, for the watchers that are opened to look. As it
// comes, a socket keeps megabytes: a watcher that does not read would be noticed after thousands of events.
const socketBuffer = 4 << 10

// feedBuffer is what the network keeps for a page: what stands in it is old when it is read. Left alone a socket grows to
// megabytes, and a page that is slow would be known to be so only ten thousands of records later.
const feedBuffer = 128 << 10

// connKey is where a request's context holds its connection.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// narrow lets the connections of pages, and of watchers that are opened to look, hold little.
func narrow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connKey{}).(*net.TCPConn)
		switch {
		case ok && strings.HasPrefix(r.UserAgent(), pipeline.WatcherAgent):
			_ = conn.SetWriteBuffer(socketBuffer) // who refuses is only slower to notice
		case ok && r.URL.Path == "/viz/events":
			_ = conn.SetWriteBuffer(feedBuffer)
		}
		next.ServeHTTP(w, r)
	})
}

// dialNarrow is the other end.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.SetReadBuffer(socketBuffer)
	}
	return conn, err
}

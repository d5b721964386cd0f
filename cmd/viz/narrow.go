package main

import (
	"context"
	"net"
	"net/http"
	"strings"

	"listwatch/internal/sandbox"
)

// socketBuffer is how much the network itself keeps of what its client does not read, for the watchers that are opened to look. As it
// comes, a socket keeps megabytes: a watcher that does not read would be noticed after thousands of events.
const socketBuffer = 4 << 10

// feedBuffer is what the network keeps for a page: what it holds is old when it is read. Left alone a socket grows to
// megabytes, and a page that is slow would be known to be so only ten thousands of records later.
const feedBuffer = 128 << 10

// connKey is where a request's context holds its connection.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// connOf returns the connection over which a request came.
func connOf(r *http.Request) net.Conn {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	return conn
}

// narrow lets the connections of pages, and of watchers that are opened to look, hold little.
func narrow(conn net.Conn, r *http.Request) {
	tcp, ok := conn.(*net.TCPConn)
	switch {
	case ok && strings.HasPrefix(r.UserAgent(), sandbox.WatcherAgent):
		_ = tcp.SetWriteBuffer(socketBuffer) // a system that refuses only notices later
	case ok && r.URL.Path == "/viz/events":
		_ = tcp.SetWriteBuffer(feedBuffer)
	}
}

// dialNarrow is the other end, for those watchers alone. An informer behind so small a window would be sent one piece of a
// large object every 200 ms, and be evicted for it.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.SetReadBuffer(socketBuffer)
	}
	return conn, err
}

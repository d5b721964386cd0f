package main

import (
	"context"
	"net"
	"net/http"
	"strings"

	"listwatch/internal/play/sandbox"
)

// socketBuffer is the size of the socket buffers of the watchers that a viewer adds. The kernel's own are megabytes:
// the server would notice a watcher that does not read only after thousands of events.
const socketBuffer = 4 << 10

// feedBuffer is the size of the socket buffer towards a page. What lies in it is old when the page reads it, and with
// the kernel's own size the server would notice a slow page only tens of thousands of records later.
const feedBuffer = 128 << 10

// narrow shrinks the send buffer of a connection to a page or to a watcher that a viewer added.
func narrow(conn net.Conn, r *http.Request) {
	tcp, ok := conn.(*net.TCPConn)
	switch {
	case ok && strings.HasPrefix(r.UserAgent(), sandbox.WatcherAgent):
		_ = tcp.SetWriteBuffer(socketBuffer) // a system that refuses only notices later
	case ok && r.URL.Path == "/viz/events":
		_ = tcp.SetWriteBuffer(feedBuffer)
	}
}

// dialNarrow shrinks the receive buffer of such a watcher's connection. Informers keep the kernel's: through so small a
// window a large object would arrive in pieces, 200 ms apart, and the server would evict them.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.SetReadBuffer(socketBuffer)
	}
	return conn, err
}

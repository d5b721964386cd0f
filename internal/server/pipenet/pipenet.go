// Package pipenet is a network without sockets: a listener and a dialer joined by net.Pipe. A goroutine that waits on
// it is durably blocked in the sense of testing/synctest, so real net/http servers and clients can run in a bubble.
package pipenet

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Listener hands the server's ends of pipes to Accept. Safe for concurrent use.
type Listener struct {
	conns  chan net.Conn // sent by Dial, never closed; unbuffered: a Dial returns when its connection was accepted
	done   chan struct{} // closed by Close
	closed sync.Once
}

var _ net.Listener = (*Listener)(nil)

// Listen returns a new listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept returns the next connection, or net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close makes Accept fail and Dial be refused. Open connections stay open. It may be called more than once.
func (l *Listener) Close() error {
	l.closed.Do(func() { close(l.done) })
	return nil
}

// Addr returns an address in words.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }

// Dial connects to the listener. If the listener is closed, the connection is refused, as it would be by a host.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	server, client := net.Pipe()
	return l.connect(ctx, server, client)
}

// connect hands the server its end of a connection, and returns the client's. Without a listener it is refused, too.
func (l *Listener) connect(ctx context.Context, server, client net.Conn) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "pipe", Addr: addr{}, Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Client returns an HTTP client whose every request goes to the listener, whatever host its URL names. The caller
// calls CloseIdleConnections when done.
func (l *Listener) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: l.Dial}}
}

// Package pipenet is a network without sockets: a listener and a dialer joined by net.Pipe. A goroutine that waits for
// a pipe is durably blocked, as testing/synctest defines it, so real net/http servers and clients can run in a bubble.
package pipenet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc/test/bufconn"

	"listwatch/internal/observe/routine"
)

// Listener returns the server's ends of pipes from Accept. It may be used from any goroutine.
type Listener struct {
	conns  chan net.Conn // sent by connect, never closed; unbuffered, so Dial waits for Accept
	done   chan struct{} // closed by Close
	closed sync.Once
}

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

// Close makes Accept and Dial fail. Open connections stay open. It may be called more than once.
func (l *Listener) Close() error {
	l.closed.Do(func() { close(l.done) })
	return nil
}

// Addr returns the same address for every listener: "pipe".
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }

// Dial returns the client's end of a pipe when Accept has taken the other end, or ctx's error when ctx is done. A
// closed listener refuses the connection, as a host would.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	server, client := net.Pipe()
	return l.connect(ctx, server, client)
}

// connect sends server to Accept and returns client, or ctx's error. A nil or closed l refuses.
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

// Client returns an HTTP client whose requests all go to the listener, whatever the URL's host. The caller calls
// CloseIdleConnections when done.
func (l *Listener) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: l.Dial}}
}

// Network is a host without sockets. It has one server at a time; all its clients connect to that one. The zero value
// is ready. A Network may be used from any goroutine.
type Network struct{ listener atomic.Pointer[Listener] }

// Serve returns when ctx is done and every handler has ended. If serving fails earlier, it calls fail, then waits.
func (n *Network) Serve(ctx context.Context, handler http.Handler, fail context.CancelCauseFunc) {
	var serving routine.Group
	var conns sync.WaitGroup // counts connections, each until its last handler has ended or hijacked it
	listener := Listen()
	server := &http.Server{
		Handler:     handler,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed, http.StateHijacked: // the user of a hijacked connection closes it
				conns.Done()
			}
		},
	}
	n.listener.Store(listener)
	serving.Go(ctx, "pipenet.serve", func(ctx context.Context) {
		if err := server.Serve(listener); ctx.Err() == nil {
			fail(fmt.Errorf("serve: %w", err))
		}
	})
	<-ctx.Done()
	// Every handler ends soon, because its request's context is done, and its writes to the closed connection fail.
	_ = server.Close()
	serving.Wait()
	conns.Wait()
}

// Client returns an HTTP client whose requests all go to the current server. Without a server, connections are refused.
// The client does not request compression. The caller calls CloseIdleConnections when done.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.dial, DisableCompression: true,
		MaxIdleConnsPerHost: 16}}
}

// dial connects to the server. Before the first server, the listener is nil, and [Listener.connect] refuses.
func (n *Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.listener.Load().Dial(ctx, network, address)
}

// socketBuffers is the total size of the kernel's buffers for a watcher's connection of cmd/viz: 4 KB at each end, and
// Linux doubles them. With it, a watcher that does not read blocks a tab's server after as many bytes as in cmd/viz.
const socketBuffers = 16 << 10

// Lines returns a client like [Network.Client]'s, and one whose connections buffer 16 KB of unread bytes, like sockets.
// The caller calls CloseIdleConnections of both when done.
func (n *Network) Lines() (plain, buffered *http.Client) {
	plain, buffered = n.Client(), n.Client()
	buffered.Transport.(*http.Transport).DialContext = n.dialBuffered
	return plain, buffered
}

func (n *Network) dialBuffered(ctx context.Context, _, _ string) (net.Conn, error) {
	pair := bufconn.Listen(socketBuffers)
	defer pair.Close()
	accepted := make(chan net.Conn, 1) // sent once, by the goroutine below, which ends when pair is closed
	go func() {
		conn, _ := pair.Accept() // fails only if the dial below fails
		accepted <- conn
	}()
	client, err := pair.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return n.listener.Load().connect(ctx, <-accepted, client)
}

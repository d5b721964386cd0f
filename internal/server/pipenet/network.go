package pipenet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/test/bufconn"

	"listwatch/internal/observe/routine"
)

// Network is a host without sockets. It has one server at a time, to which all its clients connect. The zero value is
// ready. Safe for concurrent use.
type Network struct{ listener atomic.Pointer[Listener] }

// Serve serves until ctx is done and every handler has ended. If serving breaks before, it calls fail with the error.
func (n *Network) Serve(ctx context.Context, handler http.Handler, fail context.CancelCauseFunc) {
	var serving routine.Group
	var conns sync.WaitGroup // of every connection until its last handler has ended; added to before Serve returns
	listener := Listen()
	server := &http.Server{
		Handler:     handler,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed, http.StateHijacked: // its user ends a hijacked one
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
	// No handler is stuck for long: its request's context has ended, and a write to a closed connection fails.
	_ = server.Close()
	serving.Wait()
	conns.Wait()
}

// Client returns an HTTP client whose requests all go to the current server; without one they are refused. It does not
// ask for compression. The caller calls CloseIdleConnections when done.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.dial, DisableCompression: true,
		MaxIdleConnsPerHost: 16}}
}

// dial connects to the server. Before there is one, the listener is nil, and [Listener.connect] refuses.
func (n *Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.listener.Load().Dial(ctx, network, address)
}

// socketBuffers is how many bytes a watcher's line of cmd/viz holds in the kernel: 8 KB at either end, the least that
// Linux gives. A server in a tab is to notice a watcher that does not read after as many events.
const socketBuffers = 16 << 10

// Lines returns a client like [Network.Client], and one whose connections hold 16 KB of what the server has sent and
// the client has not read, as sockets do. The caller calls CloseIdleConnections of both when done.
func (n *Network) Lines() (plain, buffered *http.Client) {
	plain, buffered = n.Client(), n.Client()
	buffered.Transport.(*http.Transport).DialContext = n.dialBuffered
	return plain, buffered
}

func (n *Network) dialBuffered(ctx context.Context, _, _ string) (net.Conn, error) {
	pair := bufconn.Listen(socketBuffers)
	defer pair.Close()
	accepted := make(chan net.Conn, 1) // sent once by the goroutine, which ends with pair
	go func() {
		conn, _ := pair.Accept() // it fails only if the dial below does
		accepted <- conn
	}()
	client, err := pair.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return n.listener.Load().connect(ctx, <-accepted, client)
}

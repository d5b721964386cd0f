package pipenet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"

	"listwatch/internal/observe/routine"
)

// Network is a host without sockets: servers come and go on it, one at a time, and its clients reach the one that is
// there. The zero value is ready. Safe for concurrent use.
type Network struct{ listener atomic.Pointer[Listener] }

// Serve serves until ctx is done and every handler has ended. If serving breaks before, it tells fail why.
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

// Client returns an HTTP client whose every request goes to the server that is there; it is refused if there is none.
// Answers come as they were written, never compressed. The caller calls CloseIdleConnections when done.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.dial, DisableCompression: true,
		MaxIdleConnsPerHost: 16}}
}

func (n *Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if listener := n.listener.Load(); listener != nil {
		return listener.Dial(ctx, network, address)
	}
	return nil, refused()
}

func refused() error {
	return &net.OpError{Op: "dial", Net: "pipe", Addr: addr{}, Err: syscall.ECONNREFUSED}
}

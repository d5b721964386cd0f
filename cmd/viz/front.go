package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second // for a client to finish its request line and headers
	closeGrace    = time.Second      // for handlers to end before their connections are cut
)

// front serves everything on the one port.
type front struct {
	listener net.Listener
	handler  http.Handler
	fail     context.CancelCauseFunc // told if serving breaks
}

// run serves until ctx is done and every handler has ended. Streams end because their requests' contexts do; a handler
// that is stuck writing to a client which does not read is freed by closing the connection.
func (f *front) run(ctx context.Context) {
	server := &http.Server{
		Handler:           narrow(f.handler),
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withConn,
	}
	served := make(chan error, 1) // sent once, by the serving goroutine
	go func() { served <- server.Serve(f.listener) }()
	select {
	case err := <-served:
		f.fail(fmt.Errorf("serve: %w", err))
	case <-ctx.Done():
		f.stop(server)
		<-served
	}
}

func (f *front) stop(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		server.Close()
	}
}

// newHTTPClient returns the client half's connection pool. Each watch holds a connection for as long as it is open.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               nil, // it is our own port
		DialContext:         dialNarrow,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
	}}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/observe/routine"
)

// What a client may take, and for how long. Answers have no limit here: a watch, and a page's feed, last as long as
// they like.
const (
	maxHeaderBytes = 64 << 10         // of a request line and headers; upstream takes 1 MiB, and no client needs it
	headerTimeout  = 10 * time.Second // for a client to send them
	idleTimeout    = 90 * time.Second // for a connection between two requests, as upstream's
	// bodyTimeout is for a client to send its body. The API gives up a request before, in a Status of its own.
	bodyTimeout = handlers.RequestTimeout + 15*time.Second
	// closeGrace is for handlers to end before their connections are cut.
	closeGrace = time.Second
)

// front serves everything on the one port.
type front struct {
	// Set by the caller, never changed.
	listener net.Listener
	handler  http.Handler
	fail     context.CancelCauseFunc // told if serving breaks
	h2c      bool                    // also speak HTTP/2 without TLS
	log      *log.Logger             // what net/http cannot tell a client; nil: the standard one

	// Of every connection, from Accept until net/http closes it or a handler hijacks it; and of HTTP/1's handlers.
	open sync.WaitGroup
}

// run serves until ctx is done and every handler has ended. Streams end because their requests' contexts do; after
// closeGrace a handler that is stuck writing to a client which does not read is freed by closing the connection.
func (f *front) run(ctx context.Context) {
	over, cutOff := context.WithCancel(context.WithoutCancel(ctx)) // the grace is over
	defer cutOff()
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serveHTTP(over, w, r) }),
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ConnState: f.track,
		ErrorLog:  f.log,
	}
	if f.h2c {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
	context.AfterFunc(ctx, func() { _ = f.listener.Close() }) // Serve returns, and says what is wrong
	if err := server.Serve(f.listener); ctx.Err() == nil {
		f.fail(fmt.Errorf("serve: %w", err)) // the program ends, too
	}
	<-ctx.Done()
	grace := time.AfterFunc(closeGrace, func() {
		_ = server.Close() // connections that no handler has
		cutOff()
	})
	defer grace.Stop() // if it has begun, no connection is left for it
	// Without keep-alives, net/http closes a connection at once if it is idle, or after its next answer. Shutdown would
	// close a connection that is about to send its first request, without an answer.
	server.SetKeepAlivesEnabled(false)
	f.open.Wait()
}

// serveHTTP serves one request. When over is done, it closes the connection; the handler finds out by itself.
func (f *front) serveHTTP(over context.Context, w http.ResponseWriter, r *http.Request) {
	conn := r.Context().Value(connKey{}).(net.Conn)
	defer context.AfterFunc(over, func() { _ = conn.Close() })()
	if r.ProtoMajor == 1 { // HTTP/2's connections cannot be hijacked
		f.open.Add(1) // while its connection is counted, too: Wait cannot have returned
		defer f.open.Done()
	}
	narrow(conn, r)
	limitBody(w, r)
	routine.Do(r.Context(), "front.request", func(context.Context) { f.handler.ServeHTTP(w, r) })
}

// newFrontLog returns a logger for fronts that writes each kind of line once: net/http repeats what it retries.
func newFrontLog(out io.Writer) *log.Logger {
	return log.New(&once{out: out, said: map[string]bool{}}, "viz: ", log.Lmsgprefix)
}

// once passes the first line of each kind on. One logger writes to it, under its own lock.
type once struct {
	out  io.Writer
	said map[string]bool // by the beginning of a line, without digits: they are of a connection or a wait
}

const maxKinds = 100 // bounds what is said: a line may hold what a client has sent

func (o *once) Write(line []byte) (int, error) {
	begins, _, _ := strings.Cut(string(line), "; retrying in")
	kind := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, begins)
	if o.said[kind] || len(o.said) == maxKinds {
		return len(line), nil
	}
	o.said[kind] = true
	return o.out.Write(line)
}

// connKey is where a request's context holds its connection.
type connKey struct{}

// track counts connections. net/http calls it for a new one before Serve can return, so none begins once run waits.
func (f *front) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		f.open.Add(1)
	case http.StateHijacked, http.StateClosed: // of a hijacked one net/http says no more: its handler is counted
		f.open.Done()
	}
}

// limitBody gives the client of r bodyTimeout to send the request's body, whatever handler reads it, or none.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == http.NoBody {
		return
	}
	limit := http.NewResponseController(w)
	_ = limit.SetReadDeadline(time.Now().Add(bodyTimeout)) // cannot fail on a connection of net/http's
	r.Body = &limitedBody{ReadCloser: r.Body, limit: limit}
}

// limitedBody is a body with a deadline.
type limitedBody struct {
	io.ReadCloser
	limit *http.ResponseController
}

// Read lifts the deadline at the end of the body. From there on net/http reads ahead to learn that the client has gone,
// and would take the deadline for that.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.limit.SetReadDeadline(time.Time{})
	}
	return n, err
}

// newHTTPClient returns a connection pool of the client half, whose connections dial opens. Each
// watch holds a connection for as long as it is open.
func newHTTPClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               nil, // it is our own port
		DialContext:         dial,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
	}}
}

// lentListener is a listener that its user may close: only the user ends by it.
type lentListener struct{ *net.TCPListener }

// lend returns listener for one user; there is one at a time.
func lend(listener *net.TCPListener) lentListener {
	_ = listener.SetDeadline(time.Time{}) // fails only if it is closed, and Accept will say so
	return lentListener{listener}
}

// Close makes a waiting Accept return. The next user accepts the connections that come from now on.
func (l lentListener) Close() error { return l.SetDeadline(time.Unix(1, 0)) }

// Accept says of a listener that is given back that it is closed. For net/http a deadline would be a reason to try
// again.
func (l lentListener) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed
	}
	return conn, err
}

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
	"listwatch/internal/play/sandbox"
)

// Limits on requests, on the time to send them, and on the time in which a front ends. Responses have no time limit,
// because a watch, or a page's feed, may last forever.
const (
	maxHeaderBytes = 64 << 10         // for a request line and headers; upstream allows 1 MiB, which no client needs
	headerTimeout  = 10 * time.Second // the time for a client to send its headers
	idleTimeout    = 90 * time.Second // the time for which a connection may be idle between two requests: upstream's
	// bodyTimeout is how long a client may take to send its body. The API gives up earlier, with its own Status.
	bodyTimeout = handlers.RequestTimeout + 15*time.Second
	// closeGrace is how long handlers may take to end before front cuts their connections.
	closeGrace = time.Second
)

// front serves the page, the book and the API, if there is one, on the program's port.
type front struct {
	// Set by the caller, never changed.
	listener net.Listener
	handler  http.Handler
	fail     context.CancelCauseFunc // called if serving breaks
	log      *log.Logger             // for net/http's errors that no client receives; nil: the standard logger

	// open counts each connection, from Accept until net/http closes it or a handler hijacks it, and each handler.
	open sync.WaitGroup
}

// run serves until ctx is done and every handler has ended. Streams end because their requests' contexts end. A handler
// may hang in a write to a client that does not read; after closeGrace, run frees it by closing the connection.
func (f *front) run(ctx context.Context) {
	over, cutOff := context.WithCancel(context.WithoutCancel(ctx)) // done when the grace is over
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
	context.AfterFunc(ctx, func() { _ = f.listener.Close() }) // makes Serve return
	if err := server.Serve(f.listener); ctx.Err() == nil {
		f.fail(fmt.Errorf("serve: %w", err)) // the program ends, too
	}
	<-ctx.Done()
	grace := time.AfterFunc(closeGrace, func() {
		_ = server.Close() // closes all connections that are not hijacked, also those without a handler
		cutOff()
	})
	defer grace.Stop() // a function that already runs finds no connection to close
	// Without keep-alives, net/http closes an idle connection at once, and any other after its next response. Shutdown
	// could close a connection without a response to its first request.
	server.SetKeepAlivesEnabled(false)
	f.open.Wait()
}

// serveHTTP serves one request. When over is done, it closes the connection, which ends the handler's reads and writes.
func (f *front) serveHTTP(over context.Context, w http.ResponseWriter, r *http.Request) {
	conn := r.Context().Value(connKey{}).(net.Conn)
	defer context.AfterFunc(over, func() { _ = conn.Close() })()
	f.open.Add(1) // the connection still counts, so Wait cannot have returned
	defer f.open.Done()
	narrow(conn, r)
	limitBody(w, r)
	routine.Do(r.Context(), "front.request", func(context.Context) { f.handler.ServeHTTP(w, r) })
}

// newFrontLog returns a logger for fronts that writes each kind of line once, although net/http logs each retry.
func newFrontLog(out io.Writer) *log.Logger {
	return log.New(&once{out: out, said: map[string]bool{}}, "viz: ", log.Lmsgprefix)
}

// once passes on the first line of each of the first maxKinds kinds. One logger writes to it, under the logger's lock.
type once struct {
	out  io.Writer
	said map[string]bool // keyed by the beginning of a line without digits, which differ from connection to connection
}

const maxKinds = 100 // limits the memory, because a line may contain what a client has sent

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

// connKey is the key of the connection in a request's context.
type connKey struct{}

// track counts connections. net/http calls it for each new one before Serve can return, so run waits for all of them.
func (f *front) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		f.open.Add(1)
	case http.StateHijacked, http.StateClosed: // net/http reports no later state; open still counts the handler
		f.open.Done()
	}
}

// limitBody gives the client bodyTimeout to send the body of r, whether or not a handler reads it.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == http.NoBody {
		return
	}
	limit := http.NewResponseController(w)
	_ = limit.SetReadDeadline(time.Now().Add(bodyTimeout)) // net/http's own connections return no error
	r.Body = &limitedBody{ReadCloser: r.Body, limit: limit}
}

// limitedBody is a request's body. At its end, it lifts the deadline that limitBody has set.
type limitedBody struct {
	io.ReadCloser
	limit *http.ResponseController
}

// Read lifts the deadline at the end of the body. After that, net/http reads ahead to detect a disconnected client, and
// would mistake an expired deadline for a disconnect.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.limit.SetReadDeadline(time.Time{})
	}
	return n, err
}

// newHTTPClient returns an HTTP client that connects to our own port with dial. Each open watch holds one connection.
func newHTTPClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               nil, // none, even if the environment names one
		DialContext:         dial,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
	}}
}

// lentListener is a listener that one user may close without closing it for the next.
type lentListener struct{ *net.TCPListener }

// lend returns listener for one user. There is only one user at a time.
func lend(listener *net.TCPListener) lentListener {
	_ = listener.SetDeadline(time.Time{}) // fails only if the listener is closed; Accept then fails, too
	return lentListener{listener}
}

// Close makes a waiting Accept return. The next user accepts all later connections.
func (l lentListener) Close() error { return l.SetDeadline(time.Unix(1, 0)) }

// Accept returns net.ErrClosed after Close. If it returned the expired deadline's error, net/http would retry.
func (l lentListener) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed
	}
	return conn, err
}

// socketBuffer is the size, in bytes, of the socket buffers of the page's watchers and consoles. The kernel's buffers
// hold megabytes: with those, a watcher could leave thousands of events unread before the server noticed.
const socketBuffer = 4 << 10

// feedBuffer is the size, in bytes, of the buffers of sockets to a page, and between the server and our own clients. A
// record that waits in one is old when the page reads it. With the kernel's own size, the server would notice a slow
// page only tens of thousands of records later, and a client that stops reading only ten thousand changes later.
const feedBuffer = 128 << 10

// narrow shrinks the send buffer of a connection to a page, to one of our clients, or to a page's watcher or console.
func narrow(conn net.Conn, r *http.Request) {
	tcp, ok := conn.(*net.TCPConn)
	switch {
	case ok && strings.HasPrefix(r.UserAgent(), sandbox.WatcherAgent):
		_ = tcp.SetWriteBuffer(socketBuffer) // if the system refuses, the server notices a slow watcher later
	case ok && (r.URL.Path == "/viz/events" || strings.HasPrefix(r.UserAgent(), "listwatch-")):
		_ = tcp.SetWriteBuffer(feedBuffer)
	}
}

// dialNarrow opens a connection with a small receive buffer, for a page's watcher or console. Informers have
// feedBuffer instead: with so small a receive window, a large object would arrive in pieces, 200 ms apart, and the
// server would evict the informer.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	return dialWith(socketBuffer)(ctx, network, address)
}

// dialWith returns a function that opens connections with a receive buffer of size bytes.
func dialWith(size int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			_ = tcp.SetReadBuffer(size)
		}
		return conn, err
	}
}

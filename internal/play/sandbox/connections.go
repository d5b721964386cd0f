package sandbox

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"syscall"

	"listwatch/internal/play/wiretap"
)

// errCut is what a client gets whose connection is cut: what it would get from a server that is away for a moment. A
// reflector then tries to watch on; after most other errors it would begin with the whole state.
var errCut = fmt.Errorf("the connection is cut: %w", syscall.ECONNREFUSED)

// Connections is the client half's end of the wire. It knows clients by what they call themselves. It can drop the open
// streams of a client, as when a connection breaks; cut the connection until it is mended, as when the network is away;
// and stall it: then the client reads nothing that arrives, neither answers nor events. The server finds out by
// backpressure.
//
// Its methods may be called from any goroutine, and do not block.
type Connections struct {
	// Set by NewConnections, never changed.
	Client   *http.Client // of the client half, whose requests go over these connections
	watchers *http.Client // of watchers that are opened to look

	mu    sync.Mutex       // guards the fields below, and those of each line; innermost but for those of wires
	last  int              // id of the newest stream
	lines map[string]*line // of each client that has sent a request and was not forgotten
}

// line is the connection of one client.
type line struct {
	cut, stalled bool
	flows        chan struct{}    // closed while the client reads; a new one with each stall; nothing is sent
	streams      map[*stream]bool // that are open, or are being opened
}

// NewConnections returns connections that are made by client, each with a look at its bytes. watchers makes those of
// watchers that are opened to look; nil: client does.
func NewConnections(client, watchers *http.Client) *Connections {
	c := &Connections{lines: map[string]*line{}}
	if watchers == nil {
		watchers = client
	}
	c.Client = c.over(wiretap.Tap(client))
	c.watchers = c.over(wiretap.Tap(watchers))
	return c
}

// Wire returns the open watches as they are on the wire, piece by piece, the oldest first.
func (c *Connections) Wire() []wiretap.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	streams := []wiretap.Stream{}
	for _, l := range c.lines {
		for s := range l.streams {
			if s.under != nil && s.wire != nil {
				stream := s.wire.Snapshot()
				stream.ID = s.id
				streams = append(streams, stream)
			}
		}
	}
	slices.SortFunc(streams, func(a, b wiretap.Stream) int { return a.ID - b.ID })
	return streams
}

// over returns a client like the given one, which has a transport, whose requests go over these connections.
func (c *Connections) over(client *http.Client) *http.Client {
	copied := *client
	copied.Transport = &lineTransport{connections: c, under: client.Transport}
	return &copied
}

// turn turns a knob of the client Target, if the client has sent a request and was not forgotten. Dropped or cut, the
// client loses its streams, also those that are being opened; stalled, it reads nothing any more.
func (c *Connections) turn(k Knob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, on := c.lines[k.Target], k.isTrue()
	switch {
	case l == nil:
		return
	case k.Name == "line.stall":
		l.stallLocked(on)
		return
	case k.Name == "line.cut":
		l.cut = on
	}
	if on || k.Name == "line.drop" {
		l.breakLocked()
	}
}

func (l *line) breakLocked() {
	for s := range l.streams {
		s.cancel(errCut)
	}
}

func (l *line) stallLocked(on bool) {
	switch {
	case on && !l.stalled:
		l.flows = make(chan struct{})
	case !on && l.stalled:
		close(l.flows)
	}
	l.stalled = on
}

// breakAll breaks the open streams of all clients whose names begin with a prefix.
func (c *Connections) breakAll(prefix string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for userAgent, l := range c.lines {
		if strings.HasPrefix(userAgent, prefix) {
			l.breakLocked()
		}
	}
}

// forget is called when a client sends no more requests.
func (c *Connections) forget(userAgent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lines, userAgent)
}

// Connection is one client that has a stream open, or whose connection is cut or stalled.
type Connection struct {
	UserAgent string `json:"userAgent"`
	Streams   int    `json:"streams"` // that are open
	Cut       bool   `json:"cut,omitempty"`
	Stalled   bool   `json:"stalled,omitempty"`
}

// of returns the connection of a client; the zero one if the client has sent no request, or was forgotten.
func (c *Connections) of(userAgent string) (connection Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.lines[userAgent]; l != nil {
		connection = l.infoLocked(userAgent)
	}
	return connection
}

func (l *line) infoLocked(userAgent string) Connection {
	info := Connection{UserAgent: userAgent, Cut: l.cut, Stalled: l.stalled}
	for s := range l.streams {
		if s.under != nil {
			info.Streams++
		}
	}
	return info
}

// list returns the connections, sorted by their clients.
func (c *Connections) list() []Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []Connection{}
	for _, userAgent := range slices.Sorted(maps.Keys(c.lines)) {
		if each := c.lines[userAgent].infoLocked(userAgent); each.Streams > 0 || each.Cut || each.Stalled {
			list = append(list, each)
		}
	}
	return list
}

// admit records that a client sends the request that s answers. A watch is kept with its line, so that it can be
// dropped. admit returns an error if the line is cut.
func (c *Connections) admit(userAgent string, s *stream, watch bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[userAgent]
	if l == nil {
		l = &line{flows: make(chan struct{}), streams: map[*stream]bool{}}
		close(l.flows)
		c.lines[userAgent] = l
	}
	if l.cut {
		return errCut
	}
	if s.line = l; watch {
		c.last++
		s.id, l.streams[s] = c.last, true
	}
	return nil
}

// opened gives a stream its bytes, those that the client reads and those on the wire.
func (c *Connections) opened(s *stream, under io.ReadCloser, conn *wiretap.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.under = under; conn != nil {
		s.wire = conn.Wire()
	}
}

// end forgets a stream.
func (c *Connections) end(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(s.line.streams, s)
}

// flows returns what is closed while the client of a stream reads.
func (c *Connections) flows(s *stream) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.line.flows
}

// lineTransport is the RoundTripper of [Connections].
type lineTransport struct {
	connections *Connections
	under       http.RoundTripper
}

// RoundTrip sends the request, unless the connection is cut. Its answer is a stream of the connection. That of a watch
// is registered before the request is sent: a cut finds it while it is being opened, too.
func (t *lineTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	s := &stream{connections: t.connections}
	s.ctx, s.cancel = context.WithCancelCause(request.Context())
	watch := request.URL.Query().Get("watch") == "true"
	if err := t.connections.admit(request.UserAgent(), s, watch); err != nil {
		s.cancel(err)
		return nil, err
	}
	var conn *wiretap.Conn
	ctx := httptrace.WithClientTrace(s.ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		conn, _ = got.Conn.(*wiretap.Conn)
	}})
	response, err := t.under.RoundTrip(request.WithContext(ctx))
	if err == nil {
		t.connections.opened(s, response.Body, conn)
		response.Body = s
		if !s.broken() {
			return response, nil
		}
	}
	_ = s.Close()
	if s.broken() {
		err = errCut
	}
	return nil, err
}

// CloseIdleConnections is what http.Client looks for.
func (t *lineTransport) CloseIdleConnections() {
	if under, ok := t.under.(interface{ CloseIdleConnections() }); ok {
		under.CloseIdleConnections()
	}
}

// stream is the answer to one request.
type stream struct {
	// Set by RoundTrip, never changed.
	connections *Connections
	ctx         context.Context // of the request, for reading: Read is not given one
	cancel      context.CancelCauseFunc
	line        *line // set by admit
	id          int   // likewise; 0: it is no watch

	// nil: it is being opened; set once, under Connections.mu, before it is read
	under io.ReadCloser
	wire  *wiretap.Wire // likewise; nil also if the connection is not tapped
}

// broken reports whether the stream was dropped or cut.
func (s *stream) broken() bool { return context.Cause(s.ctx) == errCut }

// Read reads from the wire, once the connection is not stalled.
func (s *stream) Read(p []byte) (n int, err error) {
	select {
	case <-s.connections.flows(s):
		n, err = s.under.Read(p)
	case <-s.ctx.Done():
		err = s.ctx.Err()
	}
	if err != nil && s.broken() {
		err = io.ErrUnexpectedEOF // as from a connection that broke in the middle of a chunk
	}
	return n, err
}

// Close ends the stream: its connection is closed below the reader, or the request that opens it is given up.
func (s *stream) Close() error {
	s.connections.end(s)
	s.cancel(context.Canceled)
	if s.under == nil {
		return nil
	}
	return s.under.Close()
}

package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"

	"listwatch/internal/play/wiretap"
)

// errCut is the error of a client whose line is cut: the one of a server that is away for a moment. A reflector then
// resumes its watch; after most other errors it would read the whole state again.
var errCut = fmt.Errorf("the connection is cut: %w", syscall.ECONNREFUSED)

// Connections is the client half's end of the wire. Each client, known by its user agent, has connections of its own.
// Connections can drop the open streams of a client, as a broken connection does; cut the client's line, as a network
// failure does; and stall it: then the client reads neither answers nor events, and the server notices by backpressure.
//
// Its methods may be called from any goroutine, and do not block.
type Connections struct {
	// Set by NewConnections, never changed.
	Client         *http.Client    // of the client half and all that is opened to look; sends over these connections
	like, likePage *http.Transport // for clients of the program, and of the page

	mu    sync.Mutex       // guards the fields below, and those of lines and connections; innermost but for wires' own
	last  int              // id of the newest stream
	lines map[string]*line // of each client that has sent a request and was not forgotten
}

// line is how one client reaches the server.
type line struct {
	*http.Transport // for the client's connections; never changed

	cut   bool
	stall chan struct{}  // closed to end the stall; nothing is sent; nil: no stall
	conns map[*conn]bool // that are open
}

// NewConnections returns connections that client dials; watchers dials those of the page's watchers; nil: client does.
// Each has an [http.Transport] with a DialContext.
func NewConnections(client, watchers *http.Client) *Connections {
	c := &Connections{like: client.Transport.(*http.Transport), lines: map[string]*line{}}
	c.likePage = cmp.Or(watchers, client).Transport.(*http.Transport)
	c.Client = &http.Client{Transport: c}
	return c
}

// RoundTrip implements [http.RoundTripper]: each request goes over the line of its client.
func (c *Connections) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.line(request.UserAgent()).RoundTrip(request)
}

// CloseIdleConnections is for http.Client.
func (c *Connections) CloseIdleConnections() {
	c.mu.Lock()
	lines := slices.Collect(maps.Values(c.lines))
	c.mu.Unlock() // a connection that is closed takes it
	for _, l := range lines {
		l.CloseIdleConnections()
	}
}

// line returns the line of a client.
func (c *Connections) line(userAgent string) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[userAgent]
	if l == nil {
		like := c.like
		if strings.HasPrefix(userAgent, WatcherAgent) {
			like = c.likePage
		}
		l = &line{Transport: like.Clone(), conns: map[*conn]bool{}}
		l.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			under, err := like.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return c.opened(l, under), nil
		}
		c.lines[userAgent] = l
	}
	return l
}

// Wire returns the open watches as they are on the wire, piece by piece, the oldest first.
func (c *Connections) Wire() []wiretap.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	streams := []wiretap.Stream{}
	for _, l := range c.lines {
		for each := range l.conns {
			if each.wire.Watching() {
				stream := each.wire.Snapshot()
				stream.ID = each.id
				streams = append(streams, stream)
			}
		}
	}
	slices.SortFunc(streams, func(a, b wiretap.Stream) int { return a.ID - b.ID })
	return streams
}

// turn turns a knob of the client Target, if the client has sent a request and was not forgotten. A drop or cut ends
// the client's streams, also those that are being opened.
func (c *Connections) turn(k Knob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, on := c.lines[k.Target], k.isTrue()
	switch {
	case l == nil:
	case k.Name == "line.stall" && on && l.stall == nil:
		l.stall = make(chan struct{})
	case k.Name == "line.stall" && !on && l.stall != nil:
		close(l.stall)
		l.stall = nil
	case k.Name == "line.cut":
		if l.cut = on; on {
			l.breakLocked()
		}
	case k.Name == "line.drop":
		l.breakLocked()
	}
}

func (l *line) breakLocked() {
	for each := range l.conns {
		if each.wire.IsWatch() {
			_ = each.end(errCut)
		}
	}
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
	l := c.lines[userAgent]
	delete(c.lines, userAgent)
	c.mu.Unlock() // a connection that is closed takes it
	if l != nil {
		l.CloseIdleConnections()
	}
}

// Connection describes one client with open streams, or a cut or stalled line.
type Connection struct {
	UserAgent string `json:"userAgent"`
	Streams   int    `json:"streams"` // that are open
	Cut       bool   `json:"cut,omitempty"`
	Stalled   bool   `json:"stalled,omitempty"`
}

// of returns the connection of a client; zero if the client has sent no request, or was forgotten.
func (c *Connections) of(userAgent string) (info Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[userAgent]
	if l == nil {
		return info
	}
	info = Connection{UserAgent: userAgent, Cut: l.cut, Stalled: l.stall != nil}
	for each := range l.conns {
		if each.wire.Watching() {
			info.Streams++
		}
	}
	return info
}

// list returns the connections, sorted by their clients.
func (c *Connections) list() []Connection {
	c.mu.Lock()
	clients := slices.Sorted(maps.Keys(c.lines))
	c.mu.Unlock() // of takes it
	list := []Connection{}
	for _, userAgent := range clients {
		if each := c.of(userAgent); each.Streams > 0 || each.Cut || each.Stalled {
			list = append(list, each)
		}
	}
	return list
}

// conn is one connection of a line. Without pipelining, an answer belongs to the request that was written last.
type conn struct {
	net.Conn
	connections *Connections
	line        *line
	ended       context.Context // done when the connection is closed; its cause is errCut if that was a drop or a cut
	cancel      context.CancelCauseFunc

	// Guarded by Connections.mu.
	wire *wiretap.Wire // of the newest request
	id   int           // of that
}

// opened puts a new connection into a line.
func (c *Connections) opened(l *line, under net.Conn) *conn {
	added := &conn{Conn: under, connections: c, line: l, wire: &wiretap.Wire{}}
	added.ended, added.cancel = context.WithCancelCause(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	l.conns[added] = true
	return added
}

// Write notes the beginnings of requests. It fails on a line that is cut.
func (c *conn) Write(p []byte) (int, error) {
	if !c.begin(wiretap.Begin(p)) {
		return 0, errCut
	}
	return c.Conn.Write(p)
}

func (c *conn) begin(wire *wiretap.Wire) bool {
	c.connections.mu.Lock()
	defer c.connections.mu.Unlock()
	if wire != nil && !c.line.cut {
		c.connections.last++
		c.id, c.wire = c.connections.last, wire
	}
	return !c.line.cut
}

// Read waits while the line is stalled. A watch that was broken during its opening ends like a refused request, an open
// one in the middle of a chunk.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	wire, stall := c.state()
	open := wire.Watching() // the client's view, before this piece
	wire.Read(p[:n])
	if stall != nil {
		select {
		case <-stall:
		case <-c.ended.Done():
		}
	}
	if context.Cause(c.ended) != errCut {
		return n, err
	}
	if open {
		return 0, io.ErrUnexpectedEOF
	}
	return 0, errCut
}

func (c *conn) state() (wire *wiretap.Wire, stall <-chan struct{}) {
	c.connections.mu.Lock()
	defer c.connections.mu.Unlock()
	return c.wire, c.line.stall
}

// end closes the connection, whatever its user does.
func (c *conn) end(cause error) error {
	c.cancel(cause)
	return c.Conn.Close()
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.connections.mu.Lock()
	defer c.connections.mu.Unlock()
	delete(c.line.conns, c)
	return c.end(net.ErrClosed)
}

package sandbox

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"

	"listwatch/internal/wiretap"
)

// errCut is what a client gets whose connection is cut: what it would get from a server that is away for a moment. A
// reflector then tries to watch on; after most other errors it would begin with the whole state.
var errCut = fmt.Errorf("the connection is cut: %w", syscall.ECONNREFUSED)

// Connections is the client half's end of the wire. Clients are known by what they call themselves. Of each the open streams
// can be dropped, as when a connection breaks; the connection can be cut until it is mended, as when the network is away;
// and it can be stalled: then the client reads nothing that arrives, and the server finds out by backpressure.
//
// Its methods may be called from any goroutine. None of them closes a stream: that may wait for its reader.
type Connections struct {
	// Set by NewConnections, never changed.
	client   *http.Client // of the client half
	watchers *http.Client // of watchers that are opened to look
	sockets  *http.Client // the same, for watches over a websocket
	tap      *wiretap.Tap

	mu     sync.Mutex // guards the fields below; innermost
	cond   sync.Cond  // on mu: a state has changed, or a stream's context is done
	seen   map[string]bool
	states map[string]ConnectionState
	open   map[*connectionBody]bool // that are open, or are being opened
}

// ConnectionState is how the connection of one client stands. The zero value: as it should.
type ConnectionState struct {
	Cut     bool `json:"cut,omitempty"`
	Stalled bool `json:"stalled,omitempty"`
}

// NewConnections returns connections that are made by client, each with a look at its bytes. watchers makes those of
// watchers that are opened to look; nil: client does.
func NewConnections(client, watchers *http.Client) *Connections {
	c := &Connections{tap: wiretap.New(), seen: map[string]bool{}, states: map[string]ConnectionState{}, open: map[*connectionBody]bool{}}
	c.cond.L = &c.mu
	if watchers == nil {
		watchers = client
	}
	tapped := c.tap.Tap(watchers)
	c.client = c.over(c.tap.Tap(client))
	c.watchers = c.over(tapped)
	c.sockets = c.over(&http.Client{Transport: &socketTransport{dial: dialOf(tapped)}})
	return c
}

// Client returns the HTTP client of the client half, whose requests go over these connections.
func (c *Connections) Client() *http.Client { return c.client }

// Wire returns the open watches as they are on the wire, piece by piece.
func (c *Connections) Wire() []wiretap.Stream { return c.tap.Snapshot() }

// over returns a client like the given one whose requests go over these connections.
func (c *Connections) over(client *http.Client) *http.Client {
	copied := *client
	copied.Transport = &connectionTransport{connections: c, under: client.Transport}
	if client.Transport == nil {
		copied.Transport = &connectionTransport{connections: c, under: http.DefaultTransport}
	}
	return &copied
}

// drop breaks the open streams of a client: closeAll has to close them.
func (c *Connections) drop(userAgent string) []*connectionBody {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.breakLocked(userAgent, false)
}

// cut cuts the connection of a client, or mends it. Cut, the client loses its streams, those that are just being opened
// too: closeAll has to close them.
func (c *Connections) cut(userAgent string, on bool) (broken []*connectionBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.states[userAgent]
	state.Cut = on
	c.setLocked(userAgent, state)
	if on {
		broken = c.breakLocked(userAgent, true)
	}
	return broken
}

// stall lets a client read nothing any more, or read on.
func (c *Connections) stall(userAgent string, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.states[userAgent]
	state.Stalled = on
	c.setLocked(userAgent, state)
}

// setLocked expects mu.
func (c *Connections) setLocked(userAgent string, state ConnectionState) {
	c.states[userAgent] = state
	if state == (ConnectionState{}) {
		delete(c.states, userAgent)
	}
	c.cond.Broadcast()
}

// breakLocked marks the streams of a client as broken and returns them. It expects mu.
func (c *Connections) breakLocked(userAgent string, opening bool) (broken []*connectionBody) {
	for body := range c.open {
		if body.userAgent == userAgent && (opening || body.under != nil) {
			body.broken = true
			broken = append(broken, body)
		}
	}
	return broken
}

// closeAll closes streams.
func closeAll(streams []*connectionBody) {
	for _, body := range streams {
		_ = body.Close()
	}
}

// state returns how the connection of a client stands.
func (c *Connections) state(userAgent string) ConnectionState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[userAgent]
}

// knows reports whether there is such a client: it has sent a request, and was not forgotten.
func (c *Connections) knows(userAgent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[userAgent]
}

// streams returns how many streams of a client are open.
func (c *Connections) streams(userAgent string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for body := range c.open {
		if body.userAgent == userAgent && body.under != nil {
			n++
		}
	}
	return n
}

// forget is called when a client sends no more requests.
func (c *Connections) forget(userAgent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, userAgent)
	delete(c.states, userAgent)
}

// Connection is one client that has a stream open, or whose connection was touched.
type Connection struct {
	UserAgent string `json:"userAgent"`
	Streams   int    `json:"streams"` // that are open
	ConnectionState
}

// list returns the connections, sorted by their clients.
func (c *Connections) list() []Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	streams := map[string]int{}
	for userAgent := range c.states {
		streams[userAgent] = 0
	}
	for body := range c.open {
		if body.under != nil {
			streams[body.userAgent]++
		}
	}
	list := make([]Connection, 0, len(streams))
	for userAgent, n := range streams {
		list = append(list, Connection{UserAgent: userAgent, Streams: n, ConnectionState: c.states[userAgent]})
	}
	slices.SortFunc(list, func(a, b Connection) int { return strings.Compare(a.UserAgent, b.UserAgent) })
	return list
}

// mend makes every connection stand as it should.
func (c *Connections) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.states)
	c.cond.Broadcast()
}

// admit notes that a client sends a request, and that body is being opened; nil: it is no stream. The error is that the
// connection is cut.
func (c *Connections) admit(userAgent string, body *connectionBody) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[userAgent] = true
	if c.states[userAgent].Cut {
		return errCut
	}
	if body != nil {
		c.open[body] = true
	}
	return nil
}

// opened gives a stream its bytes. It returns false if it was broken while it was being opened.
func (c *Connections) opened(body *connectionBody, under io.ReadCloser) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if body.broken {
		return false
	}
	body.under = under
	return true
}

// end forgets a stream, and returns its bytes, nil if it was not open yet.
func (c *Connections) end(body *connectionBody) io.Closer {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, body)
	c.cond.Broadcast()
	if body.under == nil {
		return nil
	}
	return body.under
}

// wake lets readers that wait at a stalled connection check whether it is still stalled.
func (c *Connections) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cond.Broadcast()
}

// await returns when the connection of body is not stalled, or body is closed or its request has gone.
func (c *Connections) await(body *connectionBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.states[body.userAgent].Stalled && c.open[body] && body.ctx.Err() == nil {
		c.cond.Wait()
	}
}

func (c *Connections) isBroken(body *connectionBody) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return body.broken
}

// connectionTransport is the RoundTripper of [Connections].
type connectionTransport struct {
	connections *Connections
	under       http.RoundTripper
}

// RoundTrip sends the request, unless the connection is cut. The answer to a watch is a stream of the connection. It is
// registered before the request is sent: a cut finds it while it is being opened, too.
func (t *connectionTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	userAgent := request.UserAgent()
	if request.URL.Query().Get("watch") != "true" {
		if err := t.connections.admit(userAgent, nil); err != nil {
			return nil, err
		}
		return t.under.RoundTrip(request)
	}
	body := &connectionBody{connections: t.connections, userAgent: userAgent}
	body.ctx, body.cancel = context.WithCancel(request.Context())
	body.stopWaking = context.AfterFunc(body.ctx, t.connections.wake)
	err := t.connections.admit(userAgent, body)
	if err != nil {
		_ = body.Close()
		return nil, err
	}
	response, err := t.under.RoundTrip(request.WithContext(body.ctx))
	if err == nil && t.connections.opened(body, response.Body) {
		response.Body = body
		return response, nil
	}
	if err == nil {
		_ = response.Body.Close()
	}
	_ = body.Close()
	if t.connections.isBroken(body) {
		err = errCut
	}
	return nil, err
}

// CloseIdleConnections is what http.Client looks for.
func (t *connectionTransport) CloseIdleConnections() {
	if under, ok := t.under.(interface{ CloseIdleConnections() }); ok {
		under.CloseIdleConnections()
	}
}

// connectionBody is the answer to one watch.
type connectionBody struct {
	// Set by RoundTrip, never changed.
	connections *Connections
	userAgent   string
	ctx         context.Context // that of the request: Read is not given one
	cancel      context.CancelFunc
	stopWaking  func() bool
	closing     sync.Once

	under  io.ReadCloser // nil: it is being opened; guarded by Connections.mu, and never changed once it is read
	broken bool          // guarded by Connections.mu
}

// Read reads from the wire, once the connection is not stalled.
func (b *connectionBody) Read(p []byte) (int, error) {
	b.connections.await(b)
	n, err := b.under.Read(p)
	if err != nil && b.connections.isBroken(b) {
		err = io.ErrUnexpectedEOF // as from a connection that broke in the middle of a chunk
	}
	return n, err
}

// Close ends the stream: its connection is closed below the reader, or the request that opens it is given up.
func (b *connectionBody) Close() (err error) {
	b.closing.Do(func() {
		b.stopWaking()
		if under := b.connections.end(b); under != nil {
			err = under.Close()
		}
		b.cancel()
	})
	return err
}

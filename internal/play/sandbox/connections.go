package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// errCut is the error of a request whose line is cut. It wraps ECONNREFUSED, like the error of a server that is briefly
// unreachable, so a reflector retries its watch; after most other errors it would relist.
var errCut = fmt.Errorf("the connection is cut: %w", syscall.ECONNREFUSED)

// Connections is the client half's HTTP transport. Each client, identified by its user agent, has its own connections.
// Connections can drop a client's open watches, as a broken connection does. It can cut a line, as a network failure
// does. It can stall a line: the client then reads nothing, so the server's writes block once the buffers are full.
//
// Its methods may be called from any goroutine. Only RoundTrip blocks.
type Connections struct {
	// Set by NewConnections, never changed.
	Client         *http.Client    // for the client half and for viewers' requests; sends over these connections
	like, likePage *http.Transport // cloned for each line: likePage for the page's clients, like for others

	mu    sync.Mutex       // guards the fields below, and the fields of lines and answers; innermost
	lines map[string]*line // by user agent: clients that have sent a request and were not forgotten
}

// line is one client's connections to the server, with the faults that knobs have set.
type line struct {
	*http.Transport // for the client's own connections; never changed

	cut     bool
	stall   chan struct{}    // nil: not stalled; closed to end the stall, never sent on
	watches map[*answer]bool // open watches, and watches that are being opened
}

// NewConnections returns connections with the settings of client's transport. For the page's watchers and consoles it
// uses those of watchers' transport, unless watchers is nil. Both transports must be of type [http.Transport].
func NewConnections(client, watchers *http.Client) *Connections {
	c := &Connections{like: client.Transport.(*http.Transport), lines: map[string]*line{}}
	c.likePage = cmp.Or(watchers, client).Transport.(*http.Transport)
	c.Client = &http.Client{Transport: c}
	return c
}

// RoundTrip implements [http.RoundTripper]: each request goes over its client's line. While the line is stalled, the
// response waits. If the line is cut, or if a drop or cut breaks a watch that is being opened, the error is errCut. A
// drop or cut makes the body of an open watch fail with [io.ErrUnexpectedEOF].
func (c *Connections) RoundTrip(request *http.Request) (*http.Response, error) {
	a := c.begin(request)
	if a == nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errCut
	}
	response, err := a.line.RoundTrip(request.WithContext(a.ctx))
	a.wait()
	if err == nil {
		a.ReadCloser, response.Body = response.Body, a
		if a.opens() {
			return response, nil
		}
		_ = response.Body.Close()
	}
	defer a.end()
	return nil, cmp.Or(context.Cause(a.ctx), err)
}

// begin returns an answer without a body for a request, or nil if the client's line is cut. The caller must end it.
func (c *Connections) begin(request *http.Request) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	userAgent := request.UserAgent()
	l := c.lines[userAgent]
	if l == nil {
		like := c.like
		if strings.HasPrefix(userAgent, WatcherAgent) {
			like = c.likePage
		}
		l = &line{Transport: like.Clone(), watches: map[*answer]bool{}}
		c.lines[userAgent] = l
	}
	if l.cut {
		return nil
	}
	a := &answer{connections: c, line: l}
	a.ctx, a.cancel = context.WithCancelCause(request.Context())
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		l.watches[a] = true
	}
	return a
}

// CloseIdleConnections closes the idle connections of all lines. [http.Client.CloseIdleConnections] calls it.
func (c *Connections) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		l.CloseIdleConnections()
	}
}

// turn turns a knob of the client k.Target. It ignores a client that has sent no request or was forgotten. A drop or a
// cut also breaks streams that are being opened.
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
	for each := range l.watches {
		each.cancel(errCut)
	}
	clear(l.watches)
}

// breakAll breaks the watches of all clients whose user agents begin with prefix.
func (c *Connections) breakAll(prefix string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for userAgent, l := range c.lines {
		if strings.HasPrefix(userAgent, prefix) {
			l.breakLocked()
		}
	}
}

// forget drops a client that sends no more requests.
func (c *Connections) forget(userAgent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.lines[userAgent]; l != nil {
		l.CloseIdleConnections()
		delete(c.lines, userAgent)
	}
}

// Connection is the state of one client's line.
type Connection struct {
	UserAgent string `json:"userAgent"`
	Streams   int    `json:"streams"` // number of open streams
	Cut       bool   `json:"cut,omitempty"`
	Stalled   bool   `json:"stalled,omitempty"`
}

// of returns the connection of a client, or an empty one if the client has sent no request or was forgotten.
func (c *Connections) of(userAgent string) (info Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[userAgent]
	if l == nil {
		return info
	}
	info = Connection{UserAgent: userAgent, Cut: l.cut, Stalled: l.stall != nil}
	for each := range l.watches {
		if each.open {
			info.Streams++
		}
	}
	return info
}

// list returns the clients with open streams or with a cut or stalled line, sorted by their user agents.
func (c *Connections) list() []Connection {
	c.mu.Lock()
	clients := slices.Sorted(maps.Keys(c.lines))
	c.mu.Unlock() // c.of locks mu itself
	list := []Connection{}
	for _, userAgent := range clients {
		if each := c.of(userAgent); each.Streams > 0 || each.Cut || each.Stalled {
			list = append(list, each)
		}
	}
	return list
}

// answer is the state of one request, and the body of its response.
type answer struct {
	io.ReadCloser // the body; nil until it begins

	// Set by begin, never changed.
	connections *Connections
	line        *line
	ctx         context.Context // the request's, cancelled at the response's end, or with errCut by a drop or cut
	cancel      context.CancelCauseFunc

	open bool // the body has begun; guarded by Connections.mu
}

// wait blocks while the line is stalled, at most until the response ends.
func (a *answer) wait() {
	if stall := a.stall(); stall != nil {
		select {
		case <-stall:
		case <-a.ctx.Done():
		}
	}
}

func (a *answer) stall() <-chan struct{} {
	a.connections.mu.Lock()
	defer a.connections.mu.Unlock()
	return a.line.stall
}

// opens records that the body has begun, and returns true. It returns false if the response has already ended.
func (a *answer) opens() bool {
	a.connections.mu.Lock()
	defer a.connections.mu.Unlock()
	a.open = a.ctx.Err() == nil
	return a.open
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.wait()
	if context.Cause(a.ctx) == errCut {
		return 0, io.ErrUnexpectedEOF
	}
	if err != nil {
		a.end()
	}
	return n, err
}

func (a *answer) Close() error {
	a.end()
	return a.ReadCloser.Close()
}

func (a *answer) end() {
	a.connections.mu.Lock()
	defer a.connections.mu.Unlock()
	delete(a.line.watches, a)
	a.cancel(nil)
}

package pipeline

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errCut is what a client gets whose line is cut: what it would get from a server that is away for a moment. A reflector
// then tries to watch on; after most other errors it would begin with the whole state.
var errCut = fmt.Errorf("the line is cut: %w", syscall.ECONNREFUSED)

// Lines is the client half's end of the wire. Clients are known by what they call themselves. Of each the open streams can
// be dropped, as when a connection breaks; the line can be cut until it is mended, as when the network is away; and it
// can be stalled: then nobody reads what arrives, and the server finds out by backpressure.
//
// Its methods may be called from any goroutine.
type Lines struct {
	mu     sync.Mutex // guards the fields below; innermost
	cond   sync.Cond  // on mu: a line has changed, or a stream's context is done
	states map[string]LineState
	open   map[*lineBody]bool
}

// LineState is how the line of one client stands. The zero value: as it should.
type LineState struct {
	Cut     bool `json:"cut,omitempty"`
	Stalled bool `json:"stalled,omitempty"`
}

func newLines() *Lines {
	l := &Lines{states: map[string]LineState{}, open: map[*lineBody]bool{}}
	l.cond.L = &l.mu
	return l
}

// over returns a client like the given one whose requests go over these lines.
func (l *Lines) over(client *http.Client) *http.Client {
	copied := *client
	copied.Transport = &lineTransport{lines: l, under: client.Transport}
	if client.Transport == nil {
		copied.Transport = &lineTransport{lines: l, under: http.DefaultTransport}
	}
	return &copied
}

// Drop breaks the open streams of a client, and returns how many there were.
func (l *Lines) Drop(userAgent string) (n int) {
	for _, body := range l.streamsOf(userAgent) {
		body.drop()
		n++
	}
	return n
}

// dropAny is Drop, with an error, 404, if there was none.
func (l *Lines) dropAny(userAgent string) error {
	if l.Drop(userAgent) == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "streams"}, userAgent)
	}
	return nil
}

// Set changes how the line of a client stands. Who is cut loses its open streams.
func (l *Lines) Set(userAgent string, state LineState) {
	l.set(userAgent, state)
	if state.Cut {
		l.Drop(userAgent)
	}
}

func (l *Lines) set(userAgent string, state LineState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states[userAgent] = state
	if state == (LineState{}) {
		delete(l.states, userAgent)
	}
	l.cond.Broadcast()
}

// State returns how the line of a client stands.
func (l *Lines) State(userAgent string) LineState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.states[userAgent]
}

// Line is one client that has a stream open, or whose line somebody has touched.
type Line struct {
	UserAgent string `json:"userAgent"`
	Streams   int    `json:"streams"` // that are open
	LineState
}

// List returns the lines, sorted by who they belong to.
func (l *Lines) List() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	streams := map[string]int{}
	for userAgent := range l.states {
		streams[userAgent] = 0
	}
	for body := range l.open {
		streams[body.userAgent]++
	}
	lines := make([]Line, 0, len(streams))
	for userAgent, n := range streams {
		lines = append(lines, Line{UserAgent: userAgent, Streams: n, LineState: l.states[userAgent]})
	}
	slices.SortFunc(lines, func(a, b Line) int { return strings.Compare(a.UserAgent, b.UserAgent) })
	return lines
}

// Mend makes every line stand as it should, and returns how many did not.
func (l *Lines) Mend() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.states)
	clear(l.states)
	l.cond.Broadcast()
	return n
}

func (l *Lines) streamsOf(userAgent string) (streams []*lineBody) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for body := range l.open {
		if body.userAgent == userAgent {
			streams = append(streams, body)
		}
	}
	return streams
}

func (l *Lines) begin(body *lineBody) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[body] = true
}

func (l *Lines) end(body *lineBody) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, body)
	l.cond.Broadcast()
}

// wake lets whoever waits at a stalled line look whether it still wants to.
func (l *Lines) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cond.Broadcast()
}

// await returns when the line of body is not stalled, or body has nobody any more who wants to read it.
func (l *Lines) await(body *lineBody) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.states[body.userAgent].Stalled && l.open[body] && body.ctx.Err() == nil {
		l.cond.Wait()
	}
}

// lineTransport is the RoundTripper of [Lines].
type lineTransport struct {
	lines *Lines
	under http.RoundTripper
}

// RoundTrip sends the request, unless the line is cut. The answer's body is a stream of the line.
func (t *lineTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	userAgent := request.UserAgent()
	if t.lines.State(userAgent).Cut {
		return nil, errCut
	}
	response, err := t.under.RoundTrip(request)
	if err != nil || request.URL.Query().Get("watch") != "true" {
		return response, err
	}
	body := &lineBody{lines: t.lines, userAgent: userAgent, ctx: request.Context(), under: response.Body}
	body.stopWaking = context.AfterFunc(body.ctx, t.lines.wake)
	t.lines.begin(body)
	response.Body = body
	return response, nil
}

// CloseIdleConnections is what http.Client looks for.
func (t *lineTransport) CloseIdleConnections() {
	if under, ok := t.under.(interface{ CloseIdleConnections() }); ok {
		under.CloseIdleConnections()
	}
}

// lineBody is the answer to one watch.
type lineBody struct {
	// Set by RoundTrip, never changed.
	lines      *Lines
	userAgent  string
	ctx        context.Context // that of the request: Read is not given one
	under      io.ReadCloser
	stopWaking func() bool

	dropping sync.Once
	mu       sync.Mutex // guards dropped; innermost
	dropped  bool
}

// Read reads from the wire, once the line is not stalled.
func (b *lineBody) Read(p []byte) (int, error) {
	b.lines.await(b)
	n, err := b.under.Read(p)
	if err != nil && b.isDropped() {
		err = io.ErrUnexpectedEOF // as from a connection that broke in the middle of a chunk
	}
	return n, err
}

// drop breaks the stream: its connection is closed below the reader.
func (b *lineBody) drop() {
	b.mu.Lock()
	b.dropped = true
	b.mu.Unlock() // early: closing may wait for the reader
	_ = b.Close()
}

func (b *lineBody) isDropped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// Close ends the stream.
func (b *lineBody) Close() (err error) {
	b.dropping.Do(func() {
		b.stopWaking()
		b.lines.end(b)
		err = b.under.Close()
	})
	return err
}

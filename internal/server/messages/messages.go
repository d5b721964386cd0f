// Package messages carries HTTP over messages, for a page and a program in one browser tab: a page has no socket to its
// own Worker. The program's half is a proxy, which sends each request over an HTTP client. If the page does not read an
// answer, the proxy does not read the connection.
//
//	page      request ─► … room, room …           | abort
//	program             head ─► chunk, chunk … end | abort
package messages

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"listwatch/internal/observe/routine"
)

// Kinds of messages. The page sends the first three, the program Abort and the others.
const (
	Request = "request" // begins an exchange
	Room    = "room"    // the page has room for Message.Room bytes more, or fewer
	Abort   = "abort"   // the exchange ends here, for a reason
	Head    = "head"
	Chunk   = "chunk"
	End     = "end"
)

// maxChunk is the most bytes in one message.
const maxChunk = 4 << 10

// Message is one message. A field that its kind has no use for is empty.
type Message struct {
	ID          int // of the exchange: the page counts them
	Kind        string
	Method, URL string
	Header      http.Header
	Status      int
	Body        []byte // of a request, or a piece of an answer's
	Room        int64
	Reason      string
}

// Proxy answers the page's messages. Its methods may be called from any goroutine.
type Proxy struct {
	// Set by New, never changed.
	client *http.Client
	post   func(Message) // to the page; does not block

	requests routine.Group // Receive adds to it, Wait waits for it

	mu   sync.Mutex // guards the exchanges; innermost
	open map[int]*exchange
}

// exchange is one request, and its answer while that is sent.
type exchange struct {
	cancel context.CancelFunc
	room   atomic.Int64  // bytes that may be sent; less than 0: the page took back what was on its way
	more   chan struct{} // sent by Receive when room has grown, received by send, never closed; one is enough
}

// New returns a proxy that sends requests on over client.
func New(client *http.Client, post func(Message)) *Proxy {
	return &Proxy{client: client, post: post, open: map[int]*exchange{}}
}

// Receive takes a message of the page and does not block. A request has a goroutine of its own, and ends with ctx.
func (p *Proxy) Receive(ctx context.Context, m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.open[m.ID]
	switch {
	case m.Kind == Request && e == nil:
		ctx, cancel := context.WithCancel(ctx)
		e = &exchange{cancel: cancel, more: make(chan struct{}, 1)}
		p.open[m.ID] = e
		p.requests.Go(ctx, "messages.request", func(ctx context.Context) { p.do(ctx, e, m) })
	case e == nil: // it has ended already
	case m.Kind == Room:
		e.room.Add(m.Room)
		select {
		case e.more <- struct{}{}:
		default:
		}
	case m.Kind == Abort:
		e.cancel()
	}
}

// Wait returns when every request has ended. Receive is not called any more.
func (p *Proxy) Wait() { p.requests.Wait() }

// do does a request to its end.
func (p *Proxy) do(ctx context.Context, e *exchange, m Message) {
	last := Message{ID: m.ID, Kind: End}
	if err := p.pump(ctx, e, m); err != io.EOF {
		last = Message{ID: m.ID, Kind: Abort, Reason: err.Error()}
	}
	e.cancel()
	p.mu.Lock()
	delete(p.open, m.ID)
	p.mu.Unlock()
	p.post(last)
}

// pump sends the answer as far as there is room for it. It returns io.EOF at the end of the answer.
func (p *Proxy) pump(ctx context.Context, e *exchange, m Message) error {
	request, err := http.NewRequestWithContext(ctx, m.Method, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return err
	}
	request.Header = m.Header
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	p.post(Message{ID: m.ID, Kind: Head, Status: response.StatusCode, Header: response.Header})
	for {
		piece := make([]byte, maxChunk) // one of its own: messages keep it
		n, end := response.Body.Read(piece)
		if err := p.send(ctx, e, m.ID, piece[:n]); err != nil {
			return err
		}
		if end != nil {
			return end
		}
	}
}

// send posts a piece of the answer, waiting until the page has room for all of it.
func (p *Proxy) send(ctx context.Context, e *exchange, id int, piece []byte) error {
	for len(piece) > 0 {
		n := min(e.room.Load(), int64(len(piece)))
		if n > 0 {
			e.room.Add(-n)
			p.post(Message{ID: id, Kind: Chunk, Body: piece[:n]})
			piece = piece[n:]
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.more:
		}
	}
	return nil
}

// Package tabhttp carries HTTP in messages between a page and the program in the page's Worker, because a page has no
// socket to a Worker. The page's half is cmd/tab/tab.js. The program's half is a proxy, which forwards each request
// through an HTTP client. While the page grants no room for a response, the proxy soon stops reading from the server.
//
//	page      request, room ─►               room ─►            | or abort, until the end
//	program                 ◄─ head, chunk …      ◄─ chunk … end | or abort
package tabhttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"listwatch/internal/observe/routine"
)

// Kinds of messages. The page sends the first three; the program sends Abort and the last three.
const (
	Request = "request" // begins an exchange
	Room    = "room"    // grants the program Message.Room more bytes
	Abort   = "abort"   // ends an exchange early; the program sets Message.Reason
	Head    = "head"
	Chunk   = "chunk"
	End     = "end"
)

// maxChunk is the maximum number of bytes in one message.
const maxChunk = 4 << 10

// Message is one message. Fields that its kind does not use are empty.
type Message struct {
	ID          int // the number of the exchange, chosen by the page
	Kind        string
	Method, URL string
	Header      http.Header
	Status      int
	Body        []byte // the body of a request, or a piece of a response's body
	Room        int64
	Reason      string
}

// Proxy handles the page's messages. Its methods may be called from any goroutine.
type Proxy struct {
	// Set by New, never changed.
	client *http.Client
	post   func(Message) // sends to the page; does not block

	requests routine.Group // goroutines of requests; Receive starts them, and Wait waits for them

	mu   sync.Mutex // guards open; innermost
	open map[int]*exchange
}

// exchange is a request and its response. It is in Proxy.open until the response ends or fails.
type exchange struct {
	cancel context.CancelFunc
	room   atomic.Int64  // bytes that may be sent
	more   chan struct{} // sent by Receive when room changes, received by send, never closed; capacity 1
}

// New returns a proxy that forwards requests through client, and sends messages with post, which must not block.
func New(client *http.Client, post func(Message)) *Proxy {
	return &Proxy{client: client, post: post, open: map[int]*exchange{}}
}

// Receive handles a message from the page, without blocking. Each request runs on a goroutine of its own, until ctx is
// done at the latest.
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
	case e == nil: // the exchange has already ended
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

// Wait returns when every request has ended. Do not call Receive afterwards.
func (p *Proxy) Wait() { p.requests.Wait() }

// do runs a request, removes the exchange, and posts its end or the error.
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

// pump forwards the request, and sends the response as room permits. It returns io.EOF at the end of the response.
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
		piece := make([]byte, maxChunk) // a new slice each time, because each message keeps its slice
		n, end := response.Body.Read(piece)
		if err := p.send(ctx, e, m.ID, piece[:n]); err != nil {
			return err
		}
		if end != nil {
			return end
		}
	}
}

// send posts a piece of the response, in parts if the page has too little room for all of it. The error is ctx's.
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

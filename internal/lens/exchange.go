package lens

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"listwatch/internal/probe"
	"listwatch/internal/wiretap"
)

// Why an exchange ended.
const (
	clientLeft  = "the client went away"
	serverEnded = "the server ended it"
	broken      = "the connection to the server broke"
	weEnded     = "the lens ended"
)

// ErrEnds is the cause of a request's context that ends because the lens does.
var ErrEnds = errors.New(weEnded)

// exchange is one request and its answer.
type exchange struct {
	// Set by begin, never changed.
	id    uint64
	began time.Time
	ask   Ask
	line  string // see requestLine

	// Written by the goroutine that forwards, read by any.
	status    atomic.Int64
	bytes     atomic.Int64
	firstByte atomic.Int64 // nanoseconds since began; 0: none has come
	writing   atomic.Int64 // since when a piece is being written to the client, in nanoseconds since began; 0: none is
	lost      atomic.Int64 // bytes that were not looked at
	cause     atomic.Value // string
	ended     atomic.Int64 // nanoseconds since began; 0: it has not ended

	// Owned by the goroutine that forwards; read by Run when it has ended.
	mediaType, encoding string
	head                []byte // of a list's body

	// Owned by Run.
	events  *wiretap.Events // nil: no piece has come
	next    int64           // offset in the body of the piece that is expected
	shownIn *probe.Log      // the newest log in which it has a watcher
}

// piece is what the forwarding goroutines send to Run: a record, or some bytes of a watch.
type piece struct {
	exchange *exchange
	record   Record
	data     []byte // nil: it is the record
	offset   int64  // of data in the body
}

// begin sees a request come.
func (l *Lens) begin(r *http.Request) *exchange {
	x := &exchange{id: l.lastID.Add(1), began: l.config.Clock.Now(), ask: newAsk(r), line: requestLine(r)}
	l.running.Store(x, true)
	l.note(x, Record{What: Asked, Ask: x.ask})
	return x
}

// end sees the end of an exchange.
func (l *Lens) end(x *exchange, ctx context.Context) {
	switch {
	case errors.Is(context.Cause(ctx), ErrEnds):
		x.cause.Store(weEnded)
	case ctx.Err() != nil:
		x.cause.Store(clientLeft)
	}
	x.ended.Store(int64(max(l.config.Clock.Since(x.began), 1)))
	l.running.Delete(x)
	l.note(x, Record{What: Ended})
}

// note offers a record to Run, and does not wait.
func (l *Lens) note(x *exchange, record Record) {
	record.At, record.Request = l.config.Clock.Now(), x.id
	select {
	case l.pieces <- piece{exchange: x, record: record}:
	default:
		if record.What == Asked {
			l.blind.Add(1)
		}
	}
}

// offer offers bytes of a watch to Run, and does not wait: what does not fit is dropped.
func (l *Lens) offer(x *exchange, p []byte, offset int64) {
	n := int64(len(p))
	if queued := l.queued.Add(n); queued <= maxQueued && len(l.pieces) < maxPieces-reserve {
		select {
		case l.pieces <- piece{exchange: x, data: append([]byte(nil), p...), offset: offset, record: Record{At: l.config.Clock.Now()}}:
			return
		default:
		}
	}
	l.queued.Add(-n)
	l.dropped.Add(n)
	x.lost.Add(n)
}

// tee is the body of an answer on its way to the client. While it is not read, what it gave last is being written to the client.
type body struct {
	io.ReadCloser
	lens     *Lens
	exchange *exchange
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	x := b.exchange
	x.writing.Store(0)
	n, err := b.ReadCloser.Read(p)
	now := int64(max(b.lens.config.Clock.Since(x.began), 1))
	if n > 0 {
		x.firstByte.CompareAndSwap(0, now)
		x.writing.Store(now)
		offset := x.bytes.Add(int64(n)) - int64(n)
		b.look(p[:n], offset)
	}
	switch {
	case errors.Is(err, io.EOF):
		x.cause.Store(serverEnded)
	case err != nil:
		x.cause.Store(broken)
	}
	return n, err
}

func (b *body) look(p []byte, offset int64) {
	x := b.exchange
	switch {
	case !x.ask.reads():
	case x.ask.Watch && x.status.Load() == http.StatusOK:
		b.lens.offer(x, p, offset)
	case len(x.head) < wiretap.ListHeadSize:
		x.head = append(x.head, p[:min(len(p), wiretap.ListHeadSize-len(x.head))]...)
	}
}

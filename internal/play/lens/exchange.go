package lens

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
)

// period is how often the lens looks whether clients read. A client that has not read for so long is stuck.
const period = time.Second

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
	lens  *Lens
	id    uint64
	began time.Time
	ask   Ask
	line  string // see requestLine
	row   *Row   // findings own it

	// Owned by the goroutine of the request.
	body                *body // nil: there is none to look at
	status              int
	mediaType, encoding string
	cause               string
	bytes               int64
	firstByte           time.Duration // since began; 0: none has come
	head                []byte        // of a body that is no watch's
	events              *wiretap.Events

	streams atomic.Bool  // it is a watch that is answered
	writing atomic.Int64 // since when a piece is being written to the client, in nanoseconds since began; 0: none is

	mu      sync.Mutex // guards shownIn, and what is told there; innermost
	shownIn *probe.Log // the newest log in which it has a watcher
}

// begin sees a request come.
func (l *Lens) begin(r *http.Request) *exchange {
	x := &exchange{lens: l, id: l.lastID.Add(1), began: l.config.Clock.Now(), ask: newAsk(r), line: requestLine(r)}
	x.row = l.findings.begin(x.id, x.ask, x.began)
	l.running.Store(x, true)
	x.tell(probe.RequestReceived, probe.Record{Text: x.line + " by " + short(x.ask.Client)})
	return x
}

// answered sees the header of the answer.
func (x *exchange) answered(response *http.Response, retryAfter time.Duration) {
	x.status = response.StatusCode
	x.mediaType, x.encoding = response.Header.Get("Content-Type"), response.Header.Get("Content-Encoding")
	x.events = wiretap.NewEvents(x.mediaType)
	opened := x.status == http.StatusOK || x.status == http.StatusSwitchingProtocols
	x.streams.Store(opened && x.ask.Watch && x.ask.reads())
	x.lens.findings.answered(x.row, x.status, retryAfter, x.lens.config.Clock.Now())
	x.show()
}

// end sees the end of an exchange.
func (x *exchange) end(ctx context.Context) {
	switch {
	case errors.Is(context.Cause(ctx), ErrEnds):
		x.cause = weEnded
	case ctx.Err() != nil:
		x.cause = clientLeft
	}
	if x.body != nil {
		x.body.look()
	}
	x.lens.running.Delete(x)
	var head wiretap.Head
	if x.status == http.StatusOK {
		head = wiretap.ReadHead(x.head, x.mediaType, x.encoding, x.ask.Name == "")
	}
	ended := end{Status: x.status, Bytes: x.bytes, FirstByte: x.firstByte, Head: head, Cause: x.cause}
	x.lens.findings.end(x.row, ended, x.lens.config.Clock.Now())
	x.close(head)
}

// tick looks whether the client reads.
func (x *exchange) tick(now time.Time) {
	x.show()
	since := time.Duration(x.writing.Load())
	if waited := now.Sub(x.began) - since; since > 0 && waited >= period && x.streams.Load() {
		x.lens.findings.stuck(x.row, waited, now)
	}
}

// body is the body of an answer on its way to the client. Until the next Read, what it has returned is being written
// to the client. It looks at a piece of a watch after that, so that no event comes later because of the lens.
type body struct {
	io.ReadCloser
	exchange *exchange
	piece    []byte // a copy of what the last Read returned of a watch
	at       time.Time
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	x := b.exchange
	x.writing.Store(0)
	b.look()
	n, err := b.ReadCloser.Read(p)
	b.at = x.lens.config.Clock.Now()
	if n > 0 {
		passed := max(b.at.Sub(x.began), 1)
		if x.bytes == 0 {
			x.firstByte = passed
		}
		x.bytes += int64(n)
		x.writing.Store(int64(passed))
		b.keep(p[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		x.cause = serverEnded
	case err != nil:
		x.cause = broken
	}
	return n, err
}

// keep keeps what the lens reads: all of a watch until it has been looked at, the beginning of a list or an object.
func (b *body) keep(p []byte) {
	x := b.exchange
	switch {
	case x.ask.Resource == "":
	case x.ask.Watch && x.status == http.StatusOK:
		x.body, b.piece = b, append(b.piece[:0], p...)
	case len(x.head) < wiretap.HeadSize:
		x.head = append(x.head, p[:min(len(p), wiretap.HeadSize-len(x.head))]...)
	}
}

// look reads the events of the piece that has been written.
func (b *body) look() {
	x := b.exchange
	for _, event := range x.events.Read(b.piece) {
		x.lens.findings.frame(x.row, event, b.at)
		x.showFrame(event)
	}
	b.piece = b.piece[:0]
}

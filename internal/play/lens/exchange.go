package lens

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
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
	mediaType, encoding string
	end                 end
	events              *wiretap.Events
	piece               []byte // a copy of what the last Read returned of a watch
	at                  time.Time
	head                []byte // of a body that is no watch's

	mu      sync.Mutex // guards the fields below, and what is told of them; innermost
	streams bool       // it is a watch that is answered, and has not ended
	writing time.Time  // since when a piece is being written to the client; zero: none is
	shownIn *probe.Log // the newest log in which it has a watcher
}

// begin sees a request come.
func (l *Lens) begin(r *http.Request) *exchange {
	x := &exchange{lens: l, id: l.lastID.Add(1), began: l.config.Clock.Now(), ask: newAsk(r), line: requestLine(r)}
	x.row = l.findings.begin(x.ask, x.began)
	l.running.Store(x, true)
	x.tell(probe.RequestReceived, probe.Record{Text: x.line + " by " + short(x.ask.Client)})
	return x
}

// answered sees the header of the answer.
func (x *exchange) answered(response *http.Response, retryAfter time.Duration) {
	x.end.Status = response.StatusCode
	x.mediaType, x.encoding = response.Header.Get("Content-Type"), response.Header.Get("Content-Encoding")
	x.events = wiretap.NewEvents(x.mediaType)
	x.lens.findings.answered(x.row, x.end.Status, retryAfter, x.lens.config.Clock.Now())
	x.mu.Lock()
	defer x.mu.Unlock()
	opened := x.end.Status == http.StatusOK || x.end.Status == http.StatusSwitchingProtocols
	x.streams = opened && x.ask.Watch && x.ask.reads()
	x.showLocked()
}

// ended sees the end of an exchange.
func (x *exchange) ended(ctx context.Context) {
	switch {
	case errors.Is(context.Cause(ctx), ErrEnds):
		x.end.Cause = weEnded
	case ctx.Err() != nil:
		x.end.Cause = clientLeft
	}
	x.look()
	x.lens.running.Delete(x)
	if x.end.Status == http.StatusOK {
		x.end.Head = wiretap.ReadHead(x.head, x.mediaType, x.encoding, x.ask.Name == "")
	}
	x.lens.findings.end(x.row, x.end, x.lens.config.Clock.Now())
	x.close()
}

// tick looks whether the client reads.
func (x *exchange) tick(now time.Time) {
	x.mu.Lock()
	x.showLocked()
	waited := now.Sub(x.writing)
	full := x.streams && !x.writing.IsZero() && waited >= period
	x.mu.Unlock() // before the lock of findings
	if full {
		x.lens.findings.stuck(x.row, waited, now)
	}
}

// write notes since when a piece is being written to the client; zero: it has been.
func (x *exchange) write(since time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writing = since
}

// body is the body of an answer on its way to the client. Until the next Read, what it has returned is being written
// to the client. The exchange looks at a piece of a watch after that, so that no event comes later because of the lens.
type body struct {
	io.ReadCloser
	*exchange
}

// Read implements [io.Reader].
func (b body) Read(p []byte) (int, error) {
	x := b.exchange
	x.write(time.Time{})
	x.look()
	n, err := b.ReadCloser.Read(p)
	x.at = x.lens.config.Clock.Now()
	if n > 0 {
		if x.end.Bytes == 0 {
			x.end.FirstByte = x.at.Sub(x.began)
		}
		x.end.Bytes += int64(n)
		x.write(x.at)
		x.keep(p[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		x.end.Cause = serverEnded
	case err != nil:
		x.end.Cause = broken
	}
	return n, err
}

// keep keeps what the lens reads: all of a watch until it has been looked at, the beginning of a list or an object.
func (x *exchange) keep(p []byte) {
	switch {
	case x.ask.Resource == "":
	case x.ask.Watch && x.end.Status == http.StatusOK:
		x.piece = append(x.piece[:0], p...)
	case len(x.head) < wiretap.HeadSize:
		x.head = append(x.head, p[:min(len(p), wiretap.HeadSize-len(x.head))]...)
	}
}

// look reads the events of the piece that has been written.
func (x *exchange) look() {
	if len(x.piece) == 0 {
		return
	}
	for _, event := range x.events.Read(x.piece) {
		x.lens.findings.frame(x.row, event, x.at)
		x.showFrame(event)
	}
	x.piece = x.piece[:0]
}

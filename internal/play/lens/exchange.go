package lens

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"time"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/play/guest"
	"listwatch/internal/play/wiretap"
)

// period is how often the lens checks whether clients read. A client that has not read for so long is stuck.
const period = time.Second

// Why an exchange ended.
const (
	clientLeft  = "the client went away"
	serverEnded = "the server ended it"
	broken      = "the connection to the server broke"
	weEnded     = "the lens ended"
)

// ErrEnds is the cause that ends requests' contexts when the lens ends.
var ErrEnds = errors.New(weEnded)

// exchange is one request and its answer. The goroutine of the request owns it, but not the [request], which others
// read.
//
// It is the body of the answer. Between two Reads, the proxy writes a piece to the client. The exchange parses a piece
// of a watch only after that, so that the lens delays no event.
type exchange struct {
	lens          *Lens
	*request      // guarded by the lens; its Ask never changes; this goroutine sets its status
	io.ReadCloser // from the server; nil before its answer

	protobuf bool   // the answer is protobuf, which the lens does not parse
	encoding string // Content-Encoding of the answer
	bytes    int64  // read so far
	why      string // the reason of its end
	events   wiretap.Events
	piece    []byte // a copy of the last piece of a watch
	at       time.Time
	head     []byte // the beginning of the body of a list or an object
}

// rewrite sets the server's URL and Host: kubectl proxy refuses other Hosts. So that the lens can parse the answers, it
// requests watches without compression, and JSON from clients that accept protobuf or JSON.
func (x *exchange) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(x.lens.config.Servers[0])
	if x.Watch {
		r.Out.Header.Set("Accept-Encoding", "identity")
	}
	accepts := strings.Split(r.Out.Header.Get("Accept"), ",")
	accepts = slices.DeleteFunc(accepts, func(each string) bool { return strings.Contains(each, "protobuf") })
	if len(accepts) > 0 {
		r.Out.Header.Set("Accept", strings.Join(accepts, ","))
	}
}

// pass notes and guards the header of an answer, and wraps its body.
func (x *exchange) pass(response *http.Response) error {
	x.answered(response.StatusCode, response.Header)
	guardBrowsers(response.Header)
	if response.StatusCode != http.StatusSwitchingProtocols { // whose body is the connection
		x.ReadCloser, response.Body = response.Body, x
	}
	return nil
}

// unreachable answers 502 when the server cannot be reached.
func (x *exchange) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	x.why = "the server cannot be reached"
	x.answered(http.StatusBadGateway, nil)
	handlers.WriteError(w, r, negotiation.Refusal(http.StatusBadGateway,
		"the lens cannot reach %s: %v; is kubectl proxy still running?", x.lens.transport.Server().Host,
		guest.Reason(err)))
}

// answered notes the header of the answer.
func (x *exchange) answered(status int, header http.Header) {
	x.protobuf, x.encoding = strings.Contains(header.Get("Content-Type"), "protobuf"), header.Get("Content-Encoding")
	l, r := x.lens, x.request
	l.mu.Lock()
	defer l.mu.Unlock()
	r.status, r.lastFrame = status, l.config.Clock.Now()
	r.gone = status == http.StatusGone && r.Watch
	if status == http.StatusTooManyRequests {
		seconds, _ := strconv.ParseInt(header.Get("Retry-After"), 10, 32)
		r.retryAfter = time.Duration(seconds) * time.Second
	}
	if r.Watch && r.reads() && (status == http.StatusOK || status == http.StatusSwitchingProtocols) {
		r.streams = true
		l.showLocked(r)
	}
}

// finish notes the end of an exchange.
func (x *exchange) finish(ctx context.Context) {
	switch {
	case errors.Is(context.Cause(ctx), ErrEnds):
		x.why = weEnded
	case ctx.Err() != nil:
		x.why = clientLeft
	}
	x.look()
	version := ""
	if x.status == http.StatusOK {
		version = wiretap.ReadVersion(x.head, x.encoding)
	}
	x.lens.end(x.request, x.why, version, x.bytes)
}

// Read implements [io.Reader].
func (x *exchange) Read(p []byte) (int, error) {
	x.writing.Store(0)
	x.look()
	n, err := x.ReadCloser.Read(p)
	x.at = x.lens.config.Clock.Now()
	if n > 0 {
		x.bytes += int64(n)
		x.writing.Store(x.at.UnixNano())
		x.keep(p[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		x.why = serverEnded
	case err != nil:
		x.why = broken
	}
	return n, err
}

// keep keeps what the lens parses: the piece of a watch, or the beginning of a list or an object.
func (x *exchange) keep(p []byte) {
	switch {
	case x.Resource == "" || x.protobuf:
	case x.Watch && x.status == http.StatusOK:
		x.piece = append(x.piece[:0], p...)
	case len(x.head) < wiretap.HeadSize:
		x.head = append(x.head, p[:min(len(p), wiretap.HeadSize-len(x.head))]...)
	}
}

// look parses the piece that the client has received.
func (x *exchange) look() {
	for _, event := range x.events.Read(x.piece) {
		x.lens.frame(x.request, event, x.at)
	}
	x.piece = x.piece[:0]
}

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

// exchange is one request and its answer on their way. The goroutine of the request owns it, but not the
// [request], which is what others see.
//
// It is the body of the answer. Until the next Read, what it has returned is being written to the client. It looks at a
// piece of a watch after that, so that no event comes later because of the lens.
type exchange struct {
	lens          *Lens
	*request      // guarded by the lens; its Ask never changes, and its status is set by this goroutine
	io.ReadCloser // from the server; nil before its answer

	protobuf bool   // the answer is, and passes unread
	encoding string // of the answer
	bytes    int64  // that have been read of it
	why      string // it ends
	events   wiretap.Events
	piece    []byte // a copy of what the last Read returned of a watch
	at       time.Time
	head     []byte // of a body that is no watch's
}

// rewrite names the server in URL and Host: kubectl proxy refuses Hosts that are not its own. So that the lens can read
// the answers, it asks for watches without compression, and for JSON where a client would take protobuf or JSON.
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

// pass lets the header of an answer pass, and puts the exchange before its body.
func (x *exchange) pass(response *http.Response) error {
	x.answered(response.StatusCode, response.Header)
	guardBrowsers(response.Header)
	if response.StatusCode != http.StatusSwitchingProtocols { // there the body is the connection, and is left alone
		x.ReadCloser, response.Body = response.Body, x
	}
	return nil
}

// unreachable answers when the server does not.
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

// keep keeps what the lens reads: all of a watch until it has been looked at, the beginning of a list or an object.
func (x *exchange) keep(p []byte) {
	switch {
	case x.Resource == "" || x.protobuf:
	case x.Watch && x.status == http.StatusOK:
		x.piece = append(x.piece[:0], p...)
	case len(x.head) < wiretap.HeadSize:
		x.head = append(x.head, p[:min(len(p), wiretap.HeadSize-len(x.head))]...)
	}
}

// look reads the events of the piece that has been written.
func (x *exchange) look() {
	for _, event := range x.events.Read(x.piece) {
		x.lens.frame(x.request, event, x.at)
	}
	x.piece = x.piece[:0]
}

package lens

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/guest"
	"listwatch/internal/probe"
)

// Config says where a [Lens] leads. Servers and Clock are required.
type Config struct {
	Servers []*url.URL // one server's addresses
	Writes  bool       // let requests pass that write
	Clock   clock.WithTicker
}

// Lens forwards requests to a server that is not ours, and looks at the lists and watches among them.
type Lens struct {
	// Set by New, never changed.
	config    Config
	transport *guest.Transport
	proxy     *httputil.ReverseProxy
	pieces    chan piece // sent by the goroutines of requests, which never wait; received by Run; never closed

	lastID  atomic.Uint64
	queued  atomic.Int64 // bytes in pieces
	dropped atomic.Int64 // bytes that were forwarded and not looked at, ever
	blind   atomic.Int64 // requests that passed unseen
	running sync.Map     // *exchange of every request that is being forwarded

	reading map[uint64]*exchange // owned by Run: those of which Asked was folded and Ended was not
	sights  sights               // owned by Run
	namedIn *probe.Log           // owned by Run: the newest log that was written to
	named   map[string]bool      // owned by Run: resources that it names

	log atomic.Pointer[probe.Log] // nil: what is seen is told in no log

	mu       sync.Mutex // guards findings; innermost
	findings *Findings
}

var _ http.Handler = (*Lens)(nil)

// Bounds of what waits to be read.
const (
	maxPieces = 4096
	// reserve of them are for what is not the piece of a body: a queue full of bodies still takes the ends of requests.
	reserve   = 1024
	maxQueued = 8 << 20 // bytes
)

// New returns a lens. It starts nothing; without [Lens.Run] it forwards and sees nothing.
func New(config Config) *Lens {
	l := &Lens{
		config: config, pieces: make(chan piece, maxPieces), reading: map[uint64]*exchange{}, sights: sights{}, findings: NewFindings(),
	}
	l.transport = guest.NewTransport(config.Servers)
	l.proxy = &httputil.ReverseProxy{
		Rewrite:        l.rewrite,
		Transport:      l.transport,
		FlushInterval:  -1, // a frame is sent on as it comes
		ErrorLog:       log.New(io.Discard, "", 0),
		BufferPool:     &buffers{},
		ModifyResponse: l.answered,
		ErrorHandler:   l.unreachable,
	}
	return l
}

// exchangeKey is where a request's context holds its exchange.
type exchangeKey struct{}

// ServeHTTP forwards one request, unless a guest may not send it.
func (l *Lens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if code, why := refuse(r); code != 0 && !l.config.Writes {
		writeStatus(w, code, why)
		return
	}
	x := l.begin(r)
	defer l.end(x, r.Context())
	l.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// rewrite names the server in URL and Host: kubectl proxy refuses Hosts that are not its own. Watches are asked for uncompressed, so
// that their frames can be read.
func (l *Lens) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(l.config.Servers[0])
	if x := exchangeOf(r.In); x.ask.Watch {
		r.Out.Header.Set("Accept-Encoding", "identity")
	}
}

func exchangeOf(r *http.Request) *exchange { return r.Context().Value(exchangeKey{}).(*exchange) }

// answered looks at the header of an answer, and puts the tee before its body.
func (l *Lens) answered(response *http.Response) error {
	x := exchangeOf(response.Request)
	x.status.Store(int64(response.StatusCode))
	x.mediaType, x.encoding = response.Header.Get("Content-Type"), response.Header.Get("Content-Encoding")
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	l.note(x, Record{What: Answered, Status: response.StatusCode, RetryAfter: time.Duration(seconds) * time.Second})
	l.stayHere(response)
	if response.StatusCode != http.StatusSwitchingProtocols { // whose body is the connection, and is left alone
		response.Body = &body{ReadCloser: response.Body, lens: l, exchange: x}
	}
	return nil
}

// stayHere lets a redirect within the server lead through the lens again. Others pass as they are: the lens follows none.
func (l *Lens) stayHere(response *http.Response) {
	to, err := response.Location()
	if err != nil || to.Host != response.Request.URL.Host {
		return
	}
	to.Scheme, to.Host = "", ""
	response.Header.Set("Location", to.String())
}

// unreachable answers when the server does not.
func (l *Lens) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	x.cause.Store("the server cannot be reached")
	if r.Context().Err() != nil {
		x.cause.Store(clientLeft)
	}
	x.status.Store(http.StatusBadGateway)
	l.note(x, Record{What: Answered, Status: http.StatusBadGateway})
	writeStatus(w, http.StatusBadGateway, fmt.Sprintf("the lens cannot reach %s: %v; is kubectl proxy still running?", l.transport.Server().Host, guest.Reason(err)))
}

// buffers are what bodies are copied through.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

// Get returns a buffer.
func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return *buffer
	}
	return make([]byte, bufferSize)
}

// Put takes it back.
func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }

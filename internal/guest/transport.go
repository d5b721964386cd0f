package guest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How long a server may take until it is thought to be gone.
const (
	dialTimeout = 5 * time.Second
	// answerTimeout is for our own requests, until the header of the answer: as long as an API server gives any of them.
	answerTimeout = time.Minute
)

// Transport leads to one server that has several addresses: to the one that answered last, and to the next when that does not. It
// follows no redirects, uses no proxy, and leaves compression to the client.
type Transport struct {
	http.Transport
	servers []*url.URL
	newest  atomic.Int64 // index of the address that is asked first
}

// NewTransport returns a transport.
func NewTransport(servers []*url.URL) *Transport {
	return &Transport{servers: servers, Transport: http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second, DisableCompression: true, ForceAttemptHTTP2: true,
	}}
}

// newClient returns a client for our own requests.
func newClient(servers []*url.URL) *http.Client {
	transport := NewTransport(servers)
	transport.ResponseHeaderTimeout = answerTimeout
	return &http.Client{Transport: transport, CheckRedirect: stay}
}

// stay refuses every redirect: what is asked of one server is not asked of another.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Server returns the address that is asked first.
func (t *Transport) Server() *url.URL { return t.servers[t.newest.Load()] }

// RoundTrip implements [http.RoundTripper]. A request that could not be sent is sent to the next address at once. One that was sent
// and not answered may have been carried out: its client decides, and finds the next address when it asks again.
func (t *Transport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	if len(t.servers) == 1 {
		return t.Transport.RoundTrip(r)
	}
	for range t.servers {
		at := t.newest.Load()
		body := &attempt{ReadCloser: r.Body}
		response, err = t.Transport.RoundTrip(to(r, t.servers[at], body))
		if err == nil {
			body.settle()
			return response, nil
		}
		if r.Context().Err() != nil {
			break
		}
		t.newest.CompareAndSwap(at, (at+1)%int64(len(t.servers)))
		if dial := (*net.OpError)(nil); !errors.As(err, &dial) || dial.Op != "dial" {
			break
		}
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, err
}

// to returns the request as it is sent to a server.
func to(r *http.Request, server *url.URL, body *attempt) *http.Request {
	sent := r.Clone(r.Context()) // the caller's own must stay as it is
	sent.URL.Scheme, sent.URL.Host, sent.Host = server.Scheme, server.Host, server.Host
	if r.Body != nil {
		sent.Body = body
	}
	return sent
}

// attempt is the body of a request in one attempt to send it. To close it closes the request's body if the attempt has come to an
// answer, and not before: an attempt that cannot connect leaves the body to the next one.
type attempt struct {
	io.ReadCloser

	mu              sync.Mutex // guards the fields below
	settled, closed bool
}

// settle says that there is no next attempt. The transport may have closed the body already, or close it later.
func (a *attempt) settle() { _ = a.update(func() { a.settled = true }) }

// Close implements [io.Closer].
func (a *attempt) Close() error { return a.update(func() { a.closed = true }) }

func (a *attempt) update(change func()) error {
	a.mu.Lock()
	change()
	over := a.settled && a.closed
	a.mu.Unlock()
	if over {
		return a.ReadCloser.Close()
	}
	return nil
}

// Reason returns an error of [http.Client] without what it says of the URL, which may hold a token.
func Reason(err error) string {
	if i := strings.LastIndex(err.Error(), `": `); i >= 0 {
		return err.Error()[i+len(`": `):]
	}
	return err.Error()
}

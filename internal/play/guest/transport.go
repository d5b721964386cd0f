package guest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// dialTimeout is how long a server may take to accept a connection.
	dialTimeout = 5 * time.Second
	// answerTimeout is how long a server may take to send the header of an answer to one of our own requests. An API
	// server gives no request more time.
	answerTimeout = time.Minute
)

// Transport sends requests to one server with several addresses. It prefers the address that answered last, and tries
// the next when that one fails. It follows no redirects, uses no proxy, and leaves compression to the client. It may be
// used from any goroutine.
//
// Differs: by [http.RoundTripper], RoundTrip must close the request's body. This one leaves it open for the next
// attempt. The lens's ReverseProxy closes it, and our own requests have none.
type Transport struct {
	http.Transport
	servers []*url.URL
	newest  atomic.Int64 // index of the preferred address
}

// NewTransport returns a transport to a server with these addresses, at least one.
func NewTransport(servers []*url.URL) *Transport {
	return &Transport{servers: servers, Transport: http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second, DisableCompression: true, ForceAttemptHTTP2: true,
	}}
}

// stay refuses every redirect: a request is for one server only.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Server returns the preferred address.
func (t *Transport) Server() *url.URL { return t.servers[t.newest.Load()] }

// RoundTrip implements [http.RoundTripper]. If it cannot connect, it tries the next address at once. A request without
// an answer may have been executed: RoundTrip returns the error, and only the next request goes to the next address.
func (t *Transport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	for range t.servers {
		at := t.newest.Load()
		response, err = t.Transport.RoundTrip(to(r, t.servers[at]))
		if err == nil || r.Context().Err() != nil {
			return response, err
		}
		t.newest.CompareAndSwap(at, (at+1)%int64(len(t.servers)))
		if dial := (*net.OpError)(nil); !errors.As(err, &dial) || dial.Op != "dial" {
			return nil, err
		}
	}
	return nil, err
}

// to returns a copy of the request for a server: a RoundTripper must not change the caller's request.
func to(r *http.Request, server *url.URL) *http.Request {
	sent := r.Clone(r.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = server.Scheme, server.Host, server.Host
	if r.Body != nil && r.Body != http.NoBody {
		sent.Body = io.NopCloser(r.Body)
	}
	return sent
}

// Reason returns the text of an [http.Client]'s error without the URL in it, which may hold a token.
func Reason(err error) string {
	if i := strings.LastIndex(err.Error(), `": `); i >= 0 {
		return err.Error()[i+len(`": `):]
	}
	return err.Error()
}

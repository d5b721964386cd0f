package storm

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// proxy forwards requests from clients to the program, and can cut their connections.
type proxy struct {
	*httptest.Server

	mu    sync.Mutex    // guards pause
	pause chan struct{} // closed by Release; new requests wait for that; nil: requests do not wait
}

// startProxy starts a proxy of v on a free port of loopback. The proxy ends with the test.
func startProxy(tb testing.TB, v *program.Viz) *proxy {
	tb.Helper()
	target, err := url.Parse(v.URL)
	require.NoError(tb, err)
	through := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		// Abort the connection, as a broken network would.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pause := p.pausing(); pause != nil {
			<-pause
		}
		through.ServeHTTP(w, r)
	}))
	tb.Cleanup(func() {
		p.Release()
		eventually.Closes(p.Server)
	})
	return p
}

func (p *proxy) pausing() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pause
}

// Cut closes every connection. New requests wait for Release.
func (p *proxy) Cut() {
	p.mu.Lock()
	p.pause = make(chan struct{})
	p.mu.Unlock()
	p.CloseClientConnections()
}

// Release lets waiting requests and all later requests go on.
func (p *proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pause != nil {
		close(p.pause)
		p.pause = nil
	}
}

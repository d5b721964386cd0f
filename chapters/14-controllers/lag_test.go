package controllers

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// lag is a way to the server on which the watches of some resources can be held: what the server sends waits, and the
// informers behind it do not know.
type lag struct {
	under     http.RoundTripper
	resources []string

	mu   sync.Mutex    // guards open
	open chan struct{} // closed while nothing is held; nothing is sent
}

func newLag(under http.RoundTripper, resources ...string) *lag {
	l := &lag{under: under, resources: resources, open: make(chan struct{})}
	close(l.open)
	return l
}

func (l *lag) gate() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// hold holds what comes from now on.
func (l *lag) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default: // it is held
	}
}

// release lets all of it go.
func (l *lag) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// RoundTrip implements [http.RoundTripper].
func (l *lag) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.under.RoundTrip(request)
	if err != nil || request.URL.Query().Get("watch") == "" {
		return response, err
	}
	for _, resource := range l.resources {
		if strings.HasSuffix(request.URL.Path, "/"+resource) {
			response.Body = &lagging{ReadCloser: response.Body, lag: l, closed: make(chan struct{})}
		}
	}
	return response, nil
}

// lagging is the body of a watch.
type lagging struct {
	io.ReadCloser
	lag    *lag
	once   sync.Once
	closed chan struct{} // closed by Close; nothing is sent
}

// Read returns what has come when it is not held.
func (b *lagging) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.lag.gate():
	case <-b.closed:
	}
	return n, err
}

// Close implements [io.Closer].
func (b *lagging) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxAsked is how many requests of viewers may be open.
const maxAsked = 16

var errRemoved = errors.New("the console's request was ended by a reset")

// Ask sends a request that a viewer has written, as a client of its own, over a line as narrow as those of the watchers
// that are opened to look: the knobs of lines act on it, and a reset ends it. What the request says of its host and of
// its client is replaced. The caller closes the answer's body. It may be called from any goroutine, and waits for the
// server. Errors: 429 if there are too many, 503 if the server cannot be reached.
func (s *Sandbox) Ask(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	agent, err := s.watchers.ask(cancel)
	if err != nil {
		cancel(err)
		return nil, err
	}
	a := &asked{ctx: ctx, end: func() {
		cancel(context.Canceled)
		s.watchers.asked(agent)
	}}
	r = r.Clone(ctx)
	r.URL.Scheme, r.URL.Host, r.Host = s.config.Base.Scheme, s.config.Base.Host, ""
	r.Header.Set("User-Agent", agent)
	// Not the client's Do, which follows redirects: the viewer reads the answer to what was sent.
	response, err := s.connections.watchers.Transport.RoundTrip(r)
	if err != nil {
		a.end()
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	a.ReadCloser, response.Body = response.Body, a
	return response, nil
}

// asked is the body of an answer to a viewer's request.
type asked struct {
	io.ReadCloser
	ctx context.Context // of the request: Read is not given one
	end func()
}

func (a *asked) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF && context.Cause(a.ctx) != nil {
		err = context.Cause(a.ctx)
	}
	return n, err
}

func (a *asked) Close() error {
	defer a.end()
	return a.ReadCloser.Close()
}

// ask gives a viewer's request a name, and notes what ends it.
func (w *watchers) ask(cancel context.CancelCauseFunc) (agent string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asking) >= maxAsked {
		return "", apierrors.NewTooManyRequests(fmt.Sprintf("%d consoles are open: end one", maxAsked), 0)
	}
	agent = fmt.Sprint(WatcherAgent, w.last.Add(1))
	w.asking[agent] = cancel
	return agent, nil
}

// asked forgets a viewer's request that is over.
func (w *watchers) asked(agent string) {
	w.connections.forget(agent)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.asking, agent)
}

// endAsked ends every request of a viewer.
func (w *watchers) endAsked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cancel := range w.asking {
		cancel(errRemoved)
	}
}

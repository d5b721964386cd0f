package sandbox

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxAsked is how many viewers' requests may be open.
const maxAsked = 16

// Ask sends a viewer's request, as a client of its own, over a line as narrow as those of the page's watchers: the
// knobs of lines act on it, and a reset breaks its stream. Ask replaces the request's host and user agent. The caller
// closes the answer's body. Ask may be called from any goroutine, and waits for the server. Errors: 429 if there are
// too many requests, 503 if the server cannot be reached.
func (s *Sandbox) Ask(r *http.Request) (*http.Response, error) {
	w := s.watchers
	if w.asked.Add(1) > maxAsked {
		w.asked.Add(-1)
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d consoles are open: end one", maxAsked), 0)
	}
	agent := w.nextAgent()
	over := sync.OnceFunc(func() {
		w.Connections.forget(agent)
		w.asked.Add(-1)
	})
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = s.config.Base.Scheme, s.config.Base.Host, ""
	r.Header.Set("User-Agent", agent)
	// Not http.Client.Do, which follows redirects.
	response, err := w.Connections.RoundTrip(r)
	if err != nil {
		over()
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	response.Body = answer{response.Body, over}
	return response, nil
}

// answer is the body of an answer to a viewer's request.
type answer struct {
	io.ReadCloser
	over func()
}

func (a answer) Close() error {
	defer a.over()
	return a.ReadCloser.Close()
}

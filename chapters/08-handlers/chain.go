package handlers

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
)

// instrument wraps a handler in the common layers: probes, metrics, a time limit, and recovery
// from panics.
//
// Upstream: k8s.io/apiserver/pkg/server/config.go: DefaultBuildHandlerChain
// Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go: InstrumentHandlerFunc
func (s *Server) instrument(scope *Scope, verb string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorder := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		said := describe(r)
		request := s.Probe.Texts(probe.RequestReceived, said, "", 0)
		if r.Method != http.MethodGet {
			r = r.WithContext(probe.WithRequest(r.Context(), request))
		}
		watching, counted := isWatch(verb, r), verb
		if watching {
			counted = "watch"
		}
		watching = watching || verb == "connect" // a log may last long, too
		end := s.Meter.Begin(r, scope, counted)
		// Deferred, because cutting a connection is done by a panic.
		defer s.answered(recorder, r, said, end)
		switch {
		case s.shutsDown():
			w.Header().Set("Connection", "close") // the next request finds another server
			WriteError(recorder, r, errShuttingDown)
		case watching:
			s.recovering(recorder, r, next)
		default:
			s.limited(recorder, r, timeLimit(verb), next)
		}
	}
}

// errShuttingDown is the answer to a client that comes back after its watch has ended with the server. If the server
// opened a watch and ended it at once, the client would list again, and with it all others.
//
// Upstream: k8s.io/apiserver/pkg/server/filters/with_retry_after.go: WithRetryAfter
// Differs: upstream does so only with --shutdown-send-retry-after, and in plain text.
var errShuttingDown = apierrors.NewTooManyRequests("The apiserver is shutting down, please try again later.", 5)

// shutsDown reports whether the server shuts down.
func (s *Server) shutsDown() bool {
	select {
	case <-s.Shutdown:
		return true
	default:
		return false
	}
}

// sender returns the client's name from its user agent, without its version: " by kubectl"; "" if there is none.
func sender(r *http.Request) string {
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name[:min(len(name), 64)]
}

// describe returns the texts of a request's records: its method, path, query, client and resource version. The query
// has only the values of the API's own parameters. Of headers only the client's name is logged ([sender]), of bodies
// nothing.
func describe(r *http.Request) []string {
	version := r.URL.Query().Get("resourceVersion")
	return []string{r.Method, r.URL.EscapedPath(), redact.Query(r.URL.RawQuery), sender(r), version}
}

func (s *Server) answered(
	recorder middleware.WrapResponseWriter, r *http.Request, said []string, end func(int, int64),
) {
	status := recorder.Status()
	if status == 0 && wantsWebsocket(r) {
		status = http.StatusSwitchingProtocols // the handler has taken over the connection
	}
	end(status, int64(recorder.BytesWritten()))
	s.Probe.Texts(probe.RequestAnswered, said, "", 0, status)
}

// isWatch reports whether a request may last long, by its URL alone: one with invalid options is answered quickly
// anyway.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: (*RequestInfoFactory).NewRequestInfo
func isWatch(verb string, r *http.Request) bool {
	if verb == "watch" {
		return true
	}
	values, ok := r.URL.Query()["watch"]
	if verb != "list" || !ok || len(values) == 0 {
		return false
	}
	return values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// recovering answers a panic with 500, if nothing has been written yet; otherwise it cuts the connection, so that the
// client does not take a part of an answer for the whole.
//
// Upstream: k8s.io/apiserver/pkg/server/filters/wrap.go: WithPanicRecovery
func (s *Server) recovering(w middleware.WrapResponseWriter, r *http.Request, handler http.HandlerFunc) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if cause == http.ErrAbortHandler || w.Status() != 0 {
			panic(http.ErrAbortHandler)
		}
		err := fmt.Errorf("this request caused apiserver to panic: %v", cause)
		WriteError(w, r, apierrors.NewInternalError(err))
	}()
	handler(w, r)
}

// timeLimit returns the time limit of a kind of requests.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: requestTimeoutUpperBound
// Differs: the limit also bounds the wait for the body; upstream waits a minute for that.
func timeLimit(verb string) time.Duration {
	switch verb {
	case "create", "update", "patch", "delete":
		return writeTimeout
	}
	return RequestTimeout
}

// limited serves a request within its time limit, or within the client's if that is shorter.
//
// Upstream: k8s.io/apiserver/pkg/server/filters/timeout.go: WithTimeoutForNonLongRunningRequests
// Differs: the context ends and the handler answers; upstream answers in its place while the handler runs on.
func (s *Server) limited(w middleware.WrapResponseWriter, r *http.Request, most time.Duration,
	handler http.HandlerFunc) {
	limit, err := requestTimeout(r.URL.Query(), most)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	ctx, done := s.withDeadline(w, r, limit, false)
	defer done()
	s.recovering(w, r.WithContext(ctx), handler)
}

// requestTimeout returns the time limit of a request: ?timeout=, at most most. A negative or malformed one is 400.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go: WithRequestDeadline
func requestTimeout(query url.Values, most time.Duration) (time.Duration, error) {
	text := query.Get("timeout")
	if text == "" {
		return most, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid timeout specified in the request URL - %q", text))
	}
	return min(cmp.Or(timeout, most), most), nil
}

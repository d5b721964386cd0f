package handlers

import (
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

// instrument wraps a handler in everything that is the same for all: it is announced and
// counted, its time is limited, and its panics are turned into answers.
//
// Upstream: k8s.io/apiserver/pkg/server/config.go: DefaultBuildHandlerChain
// Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go: InstrumentHandlerFunc
func (s *Server) instrument(scope *Scope, verb string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorder := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		said := describe(r)
		s.Probe.Texts(probe.RequestReceived, said, "", 0)
		watching, counted := isWatch(verb, r), verb
		if watching {
			counted = "watch"
		}
		watching = watching || verb == "connect" // a log may go on for long, too
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

// errShuttingDown is the answer to a client that comes back when its watch has just ended with the server. A watch that
// was opened and ended at once would tell it that something is wrong: it would list again, and with it all others.
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

// sender names the client as it names itself, without its version: " by kubectl", or "" if it does not.
func sender(r *http.Request) string {
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name[:min(len(name), 64)]
}

// describe returns what the log says of a request: its method, path, query, client and the version it asks for. The
// query has the values of the API's own parameters alone. The path is never a secret; of headers only the client's name
// is logged ([sender]), of bodies nothing.
func describe(r *http.Request) []string {
	query := ""
	if r.URL.RawQuery != "" {
		query = redact.Query(r.URL.RawQuery)
	}
	version := r.URL.Query().Get("resourceVersion")
	return []string{r.Method, r.URL.EscapedPath(), query, sender(r), version}
}

func (s *Server) answered(
	recorder middleware.WrapResponseWriter, r *http.Request, said []string, end func(int, int64),
) {
	status := recorder.Status()
	if status == 0 && wantsWebsocket(r) {
		status = http.StatusSwitchingProtocols // the connection was handed over, and answered for itself
	}
	end(status, int64(recorder.BytesWritten()))
	s.Probe.Texts(probe.RequestAnswered, said, "", 0, status)
}

// isWatch reports whether a request will go on for long, judged by its URL alone: if its options turn out to be
// nonsense it is answered quickly anyway.
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

// recovering turns a panic into a 500, if nothing has been written yet; otherwise the connection is cut, so that the
// client does not take half an answer for a whole one.
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

// timeLimit returns how long a request may take.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: requestTimeoutUpperBound
// Differs: here the limit holds for a body that does not come, too; upstream waits a minute for that.
func timeLimit(verb string) time.Duration {
	switch verb {
	case "create", "update", "patch", "delete":
		return writeTimeout
	}
	return RequestTimeout
}

// limited serves a request that must not take longer than its time limit, or than its client wants to wait.
//
// Upstream: k8s.io/apiserver/pkg/server/filters/timeout.go: WithTimeoutForNonLongRunningRequests
// Differs: the handler is told to stop and gives the answer itself; upstream answers over its head and lets it run on.
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

// requestTimeout returns how long a request may take: ?timeout=, but no more than most.
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
	if timeout == 0 || timeout > most {
		return most, nil
	}
	return timeout, nil
}

package handlers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/probe"
	"listwatch/internal/routine"
)

// route is what is known about a request before it is served.
type route struct {
	scope *Scope // nil outside of resources
	verb  string
}

// instrument wraps a handler in everything that is the same for all: it is announced and counted, its time is limited,
// and its panics are turned into answers.
//
// Upstream: k8s.io/apiserver/pkg/server/config.go: DefaultBuildHandlerChain
func (s *Server) instrument(to route, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorder := &statusRecorder{ResponseWriter: w}
		line := requestLine(r)
		s.probe.Text(probe.RequestReceived, line, "", 0)
		watching := isWatch(to, r)
		verb := to.verb
		if watching {
			verb = "watch"
		}
		end := s.meter.Begin(r, to.scope, verb)
		// Deferred, because cutting a connection is done by a panic.
		defer s.answered(recorder, line, end)
		if watching {
			s.recovering(recorder, r, handler)
		} else {
			s.limited(recorder, r, handler)
		}
	}
}

// requestLine returns what the log says of a request: its method, path and query, the latter without credentials. The
// path is never a secret; headers and bodies are not logged at all.
func requestLine(r *http.Request) string {
	line := r.Method + " " + r.URL.EscapedPath()
	if r.URL.RawQuery == "" {
		return line
	}
	parameters := strings.Split(r.URL.RawQuery, "&")
	for i, parameter := range parameters {
		name, _, _ := strings.Cut(parameter, "=")
		if isCredential(name) {
			parameters[i] = name + "=(masked)"
		}
	}
	return line + "?" + strings.Join(parameters, "&")
}

// isCredential reports whether the value of a query parameter is likely to be a secret, judged by its name. Nothing here
// reads such a parameter, but clients may send one all the same.
func isCredential(name string) bool {
	plain, err := url.QueryUnescape(name)
	if err != nil {
		return true // it cannot be told
	}
	plain = strings.ToLower(plain)
	for _, word := range []string{"token", "secret", "password", "authorization", "apikey", "api_key", "signature"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return false
}

func (s *Server) answered(recorder *statusRecorder, line string, end func(int, int64)) {
	end(recorder.status, recorder.written)
	s.probe.Text(probe.RequestAnswered, line, "", 0, recorder.status)
}

// isWatch reports whether a request will go on for long, judged by its URL alone: if its options turn out to be
// nonsense it is answered quickly anyway.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: (*RequestInfoFactory).NewRequestInfo
func isWatch(to route, r *http.Request) bool {
	if to.verb == "watch" {
		return true
	}
	values, ok := r.URL.Query()["watch"]
	if to.verb != "list" || !ok || len(values) == 0 {
		return false
	}
	return values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// recovering turns a panic into a 500, if nothing has been written yet; otherwise the connection is cut, so that the
// client does not take half an answer for a whole one.
//
// Upstream: k8s.io/apiserver/pkg/server/filters/wrap.go: WithPanicRecovery
func (s *Server) recovering(w *statusRecorder, r *http.Request, handler http.HandlerFunc) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if cause == http.ErrAbortHandler || w.status != 0 {
			panic(http.ErrAbortHandler)
		}
		err := fmt.Errorf("this request caused apiserver to panic: %v", cause)
		WriteError(w, r, apierrors.NewInternalError(err))
	}()
	handler(w, r)
}

// limited serves a request that must not take longer than its time limit.
//
// Upstream: k8s.io/apiserver/pkg/server/filters/timeout.go: WithTimeoutForNonLongRunningRequests
// Differs: the handler is told to stop and gives the answer itself; upstream answers over its head and lets it run on.
func (s *Server) limited(w *statusRecorder, r *http.Request, handler http.HandlerFunc) {
	limit, err := requestTimeout(r.URL.Query())
	if err != nil {
		WriteError(w, r, err)
		return
	}
	ctx, done := s.withDeadline(w, r, limit)
	defer done()
	s.recovering(w, r.WithContext(ctx), handler)
}

// requestTimeout returns how long a request may take: ?timeout=, but no more than [RequestTimeout].
//
// Upstream: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go: WithRequestDeadline
func requestTimeout(query url.Values) (time.Duration, error) {
	text := query.Get("timeout")
	if text == "" {
		return RequestTimeout, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid timeout specified in the request URL - %q", text))
	}
	if timeout == 0 || timeout > RequestTimeout {
		return RequestTimeout, nil
	}
	return timeout, nil
}

// deadline ends one request when its time is over, wherever it is stuck: a wait on the context, a read of a body that
// does not come, or a write to a client that does not read.
type deadline struct {
	server *Server
	conn   *http.ResponseController
	cancel context.CancelCauseFunc
	limit  time.Duration
	group  routine.Group

	fired bool // written by run, read when it has ended
}

// writeGrace is how long after the end of its time a request may still write its answer.
const writeGrace = 10 * time.Second

// longAgo is a moment at which every read and write should have been finished.
var longAgo = time.Unix(1, 0)

// withDeadline returns a context that ends with errRequestTimeout after limit. done must be called, and returns when
// nothing of the deadline is left.
//
// A connection on which a deadline was set must not serve another request: net/http has seen a read fail, takes the
// client for gone, and would start every further request with a context that is done. A timeout that was answered in
// time says so in its header; otherwise done cuts the connection, by a panic.
func (s *Server) withDeadline(w http.ResponseWriter, r *http.Request, limit time.Duration) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	d := &deadline{server: s, conn: http.NewResponseController(w), cancel: cancel, limit: limit}
	finished, finish := context.WithCancel(context.WithoutCancel(ctx))
	d.group.Go(finished, "handlers.deadline", d.run)
	return ctx, func() {
		finish()
		cancel(nil)
		d.group.Wait()
		if d.fired && w.Header().Get("Connection") != "close" {
			panic(http.ErrAbortHandler)
		}
	}
}

// withWatchDeadline is withDeadline for a watch, which has a timer of its own: what is left to bound is a write to a
// client that does not read. The context says when the watch will end, so that the cacher can send a last bookmark
// shortly before.
//
// Differs: upstream puts no deadline on the writes of a watch; there a stuck one lasts until the transport gives up.
func (s *Server) withWatchDeadline(w http.ResponseWriter, r *http.Request, timeout time.Duration) (ctx context.Context, done func()) {
	end := s.clock.Now().Add(timeout)
	ctx, done = s.withDeadline(w, r, timeout+writeGrace)
	return deadlineContext{ctx, end}, done
}

// deadlineContext announces an end that it does not itself bring about, in the time of the injected clock.
//
// Differs: upstream's is context.WithTimeout, which knows only the wall clock.
type deadlineContext struct {
	context.Context
	end time.Time
}

// Deadline returns when the watch will be ended.
func (c deadlineContext) Deadline() (end time.Time, ok bool) { return c.end, true }

// run waits for the end of the request or of its time.
func (d *deadline) run(ctx context.Context) {
	timer := d.server.clock.NewTimer(d.limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C():
	}
	d.fired = true
	d.cancel(errRequestTimeout)
	// Where deadlines cannot be set, as in a test's recorder, nothing gets stuck either.
	_ = d.conn.SetReadDeadline(longAgo)
	timer.Reset(writeGrace)
	select {
	case <-ctx.Done():
	case <-timer.C():
		_ = d.conn.SetWriteDeadline(longAgo)
		<-ctx.Done()
	}
}

// statusRecorder remembers the status and the size of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status  int   // 0 until the header is written
	written int64 // bytes
}

// WriteHeader remembers code.
func (r *statusRecorder) WriteHeader(code int) {
	if r.status == 0 {
		r.status = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write writes the header first if need be, as net/http does.
func (r *statusRecorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.written += int64(n)
	return n, err
}

// Hijack hands the connection over to a websocket, which answers for itself.
func (r *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.status = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}

// Unwrap lets http.ResponseController and flusherOf reach the writer below.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

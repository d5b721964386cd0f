package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/routine"
)

// errDeadlineExceeded is the cause with which a request's context ends when its time is over.
var errDeadlineExceeded = errors.New("request timeout")

// writeGrace is how long after the end of its time a request may still write its answer.
const writeGrace = 10 * time.Second

// longAgo is a moment at which every read and write should have been finished.
var longAgo = time.Unix(1, 0)

// requestDeadline ends a request when its time is over, wherever it is stuck: in a wait on the context, in a read of a
// body that does not come, or in a write to a client that does not read.
type requestDeadline struct {
	// Set by withDeadline, never changed.
	clock, patience clock.Clock // of the request, and of its client's socket
	limit           time.Duration
	watch           bool
	conn            *http.ResponseController
	cancel          context.CancelCauseFunc

	group routine.Group
	fired bool // written by run, read when it has ended
}

// withDeadline returns a context that ends with [errDeadlineExceeded] after limit. A watch ends by a timer of its own;
// its context ends a [writeGrace] later, because what is left to bound is a write to a client that does not read. done
// must be called, and returns when nothing of the deadline is left.
//
// A connection on which a deadline was set must not serve another request: net/http has seen a read fail, takes the
// client for gone, and would start every further request with a context that is done. A timeout that was answered in
// time says so in its header, "Connection: close"; otherwise done cuts the connection, by a panic.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go: WithRequestDeadline
// Differs: upstream puts no deadline on reads and writes; there a stuck one lasts until the transport gives up.
func (s *Server) withDeadline(w http.ResponseWriter, r *http.Request, limit time.Duration,
	watch bool) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	d := &requestDeadline{
		clock: s.Clock, patience: s.Patience, limit: limit, watch: watch, conn: http.NewResponseController(w),
		cancel: cancel,
	}
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

// run waits for the end of the request, or of its time. The grace is the patience's: a client that does not read is not
// waited for any longer in a world that is held.
func (d *requestDeadline) run(ctx context.Context) {
	if routine.Sleep(ctx, d.clock, d.limit) != nil {
		return // the request has ended in time
	}
	if !d.watch {
		d.exceed()
	}
	if routine.Sleep(ctx, d.patience, writeGrace) != nil {
		return
	}
	d.exceed()
	_ = d.conn.SetWriteDeadline(longAgo)
}

// exceed ends the context and a read of the body. It may be called twice.
func (d *requestDeadline) exceed() {
	d.fired = true
	d.cancel(errDeadlineExceeded)
	// Where deadlines cannot be set, as in a test's recorder, nothing gets stuck either.
	_ = d.conn.SetReadDeadline(longAgo)
}

// announced is a context that tells an end which it does not itself bring about, in the time of any clock.
//
// Differs: upstream's is context.WithTimeout, which knows only the wall clock.
type announced struct {
	context.Context
	end time.Time
}

// Deadline returns the end.
func (c announced) Deadline() (end time.Time, ok bool) { return c.end, true }

package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/routine"
)

// errDeadlineExceeded is the cause that ends a request's context when its time is over.
var errDeadlineExceeded = errors.New("request timeout")

// writeGrace is the time, after a request's limit, in which the request may still write its answer.
const writeGrace = 10 * time.Second

// longAgo is a moment at which every read and write should have been finished.
var longAgo = time.Unix(1, 0)

// requestDeadline ends a request when its time is over, wherever it waits: on the context, on a body that does not
// come, or on a client that does not read.
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

// withDeadline returns a context that ends with [errDeadlineExceeded] after limit. A watch ends by its own timer; its
// context ends a [writeGrace] later, only to bound a write to a client that does not read. The caller must call done,
// which returns when the deadline's goroutine has ended.
//
// A connection on which a deadline was set must not serve another request: net/http has seen a read fail, takes the
// client for gone, and would start every further request with a context that is done. So the answer to a timeout has
// "Connection: close"; if there is no answer, done cuts the connection, by a panic.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go: WithRequestDeadline
// Differs: upstream puts no deadline on reads and writes; there a stuck call lasts until the transport gives up.
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

// run waits for the end of the request, or of its time. The patience clock measures the grace, which therefore also
// ends in a held world.
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
	// A writer without deadlines, such as a test's recorder, does not block.
	_ = d.conn.SetReadDeadline(longAgo)
}

// announced is a context with a Deadline by any clock. It does not end by itself at that time.
//
// Differs: upstream's is context.WithTimeout, which knows only the wall clock.
type announced struct {
	context.Context
	end time.Time
}

func (c announced) Deadline() (end time.Time, ok bool) { return c.end, true }

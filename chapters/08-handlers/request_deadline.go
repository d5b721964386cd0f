package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/routine"
)

// errDeadlineExceeded is the cause with which a request's context ends when its time is over.
var errDeadlineExceeded = errors.New("request timeout")

// writeGrace is how long after the end of its time a request may still write its answer.
const writeGrace = 10 * time.Second

// longAgo is a moment at which every read and write should have been finished.
var longAgo = time.Unix(1, 0)

// deadline ends a request when its time is over, wherever it is stuck: in a wait on the context, in a read of a body that does
// not come, or in a write to a client that does not read. Time is that of a given clock.
type deadline struct {
	clock  clock.WithTicker
	conn   *http.ResponseController
	cancel context.CancelCauseFunc
	limit  time.Duration
	group  routine.Group

	fired bool // written by run, read when it has ended
}

// withDeadline returns a context that ends with [errDeadlineExceeded] after limit. done must be called, and returns when nothing of the
// deadline is left.
//
// A connection on which a deadline was set must not serve another request: net/http has seen a read fail, takes the
// client for gone, and would start every further request with a context that is done. A timeout that was answered in
// time says so in its header, "Connection: close"; otherwise done cuts the connection, by a panic.
func withDeadline(w http.ResponseWriter, r *http.Request, clock clock.WithTicker, limit time.Duration) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	d := &deadline{clock: clock, conn: http.NewResponseController(w), cancel: cancel, limit: limit}
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

// announced is a context that tells an end which it does not itself bring about, in the time of any clock.
//
// Differs: upstream's is context.WithTimeout, which knows only the wall clock.
type announced struct {
	context.Context
	end time.Time
}

// Deadline returns the end.
func (c announced) Deadline() (end time.Time, ok bool) { return c.end, true }

// run waits for the end of the request or of its time.
func (d *deadline) run(ctx context.Context) {
	timer := d.clock.NewTimer(d.limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C():
	}
	d.fired = true
	d.cancel(errDeadlineExceeded)
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

package listwatch

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"listwatch/internal/observe/routine"
)

const (
	// maxRetries is how often a request is sent again after the first time.
	maxRetries = 10
	// connectionRetryDelay is the wait before a request is sent again because the connection broke.
	connectionRetryDelay = time.Second
	// maxDrain is how much of an unwanted answer is read so that its connection can be used again.
	maxDrain = 2 << 10
)

// withRetry decides, attempt by attempt, whether one request is sent again. It belongs to one call of Do or Watch.
//
// The server decides: 429 and 5xx are tried again if they say when, in Retry-After. A connection that broke says
// nothing, so it is tried again only where that cannot do something twice.
//
// Upstream: k8s.io/client-go/rest/with_retry.go: WithRetry
// Differs: the last error is returned as it is, without the one of the attempt before.
type withRetry struct {
	request     *Request
	isRetryable func(error) bool // of errors without an answer

	attempts int
	delay    time.Duration // before the next attempt
}

// before waits until the attempt may be made. The first one waits for the limiter only if throttled says so, the
// others always do, after the delay that the server asked for.
func (w *withRetry) before(ctx context.Context, throttled bool) error {
	w.attempts++
	if w.attempts > 1 {
		if err := routine.Sleep(ctx, w.request.client.config.Clock, w.delay); err != nil {
			return err
		}
		throttled = true
	}
	if !throttled || w.request.client.limiter == nil {
		return ctx.Err()
	}
	return w.request.tryThrottle(ctx)
}

// tryThrottle takes a token from the client's bucket. The token may be one that does not exist
// yet: then the request waits until it does, or gives it back when ctx is done before.
//
// Upstream: k8s.io/client-go/rest/request.go: (*Request).tryThrottle
// Differs: upstream fails at once if the token would come after the deadline of ctx.
func (r *Request) tryThrottle(ctx context.Context) error {
	clk := r.client.config.Clock
	start, err := clk.Now(), ctx.Err()
	token := r.client.limiter.ReserveN(start, 1)
	if delay := token.DelayFrom(start); err == nil && delay > 0 {
		err = routine.Sleep(ctx, clk, delay)
	}
	if err != nil {
		token.CancelAt(clk.Now())
	}
	r.client.config.Metrics.waited(r, clk.Since(start))
	return err
}

// decide reports whether to make another attempt, given the answer or the error of the last.
//
// Upstream: k8s.io/client-go/rest/with_retry.go: (*withRetry).IsNextRetry
func (w *withRetry) decide(response *http.Response, err error) bool {
	if w.attempts > maxRetries {
		return false
	}
	if err != nil {
		w.delay = connectionRetryDelay
		return w.isRetryable(err)
	}
	seconds, ok := retryAfterSeconds(response)
	w.delay = time.Duration(seconds) * time.Second
	return ok && (response.StatusCode == http.StatusTooManyRequests ||
		response.StatusCode >= 500)
}

// retryAfterSeconds returns the number in Retry-After. ok is false if there is none; a date is not understood.
func retryAfterSeconds(response *http.Response) (seconds int, ok bool) {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0, false
	}
	return seconds, true
}

// isBroken reports whether the connection ended before there was an answer. Nothing is known of what the server did.
func isBroken(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// isStreamEnd reports whether err is how streams end, sooner or later: worth opening another, not worth a message.
func isStreamEnd(err error) bool {
	return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

func never(error) bool { return false }

// discard gives up an answer, if it is not nil. It reads a short rest, so that the transport can keep the connection.
func discard(response *http.Response) {
	if response == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxDrain)
	_ = response.Body.Close()
}

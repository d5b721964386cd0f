package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/pipenet"
)

// served is a front in a bubble, on a network of pipes: a write blocks until the other side reads.
type served struct {
	listener *pipenet.Listener
	stop     context.CancelFunc
	ended    chan struct{} // closed when run returns
}

func serveIn(t *testing.T, handler http.HandlerFunc) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{listener: pipenet.Listen(), stop: cancel, ended: make(chan struct{})}
	f := &front{listener: s.listener, handler: handler, fail: func(err error) { t.Error(err) }}
	var group routine.Group
	group.Go(ctx, "test.front", func(ctx context.Context) { defer close(s.ended); f.run(ctx) })
	t.Cleanup(func() { cancel(); group.Wait() })
	return s
}

// say sends text over a new connection.
func (s *served) say(t *testing.T, text string) net.Conn {
	t.Helper()
	conn := require.Value(s.listener.Dial(t.Context(), "", ""))(t)
	t.Cleanup(func() { conn.Close() })
	require.Value(io.WriteString(conn, text))(t)
	return conn
}

// closedWithin requires that the server closes the connection within limit, and returns what it sends until then.
func closedWithin(t *testing.T, conn net.Conn, limit time.Duration) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(limit))
	said, err := io.ReadAll(conn)
	assert.False(t, errors.Is(err, os.ErrDeadlineExceeded), "open after %v", limit)
	return string(said)
}

const (
	get  = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
)

func TestWhatAClientDoesNotSendIsNotWaitedForLong(t *testing.T) {
	reads := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		text    string
		limit   time.Duration
	}{
		{"nothing at all", reads, "", headerTimeout},
		{"half a header", reads, "GET / HTTP/1.1\r\nHo", headerTimeout},
		{"half a body, which the handler reads", reads, post + "12345", bodyTimeout},
		{"half a body, which the handler does not read", func(http.ResponseWriter, *http.Request) {}, post + "12345",
			bodyTimeout},
		{"no second request", reads, get, idleTimeout},
		{"a header without end", reads, "GET / HTTP/1.1\r\nHost: x\r\nLong: " + strings.Repeat("x", maxHeaderBytes),
			headerTimeout},
	} {
		bubble.Run(t, c.name, func(t *testing.T) {
			conn := serveIn(t, c.handler).say(t, c.text)
			closedWithin(t, conn, c.limit+time.Second)
		})
	}
}

func TestALongHeaderIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serveIn(t, func(http.ResponseWriter, *http.Request) { t.Error("served") })
		conn := s.say(t, "")
		// An error means that the server has stopped reading, as it should.
		go fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("x", 2*maxHeaderBytes))
		said := closedWithin(t, conn, headerTimeout)
		assert.True(t, strings.HasPrefix(said, "HTTP/1.1 431 "), "got %q", said)
	})
}

func TestAnAnswerLastsAsLongAsItLikes(t *testing.T) {
	const long = 10 * (bodyTimeout + idleTimeout)
	for name, text := range map[string]string{"GET": get, "POST": post + "0123456789"} {
		bubble.Run(t, name, func(t *testing.T) {
			s := serveIn(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, "begins\n")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
					t.Error("cut: ", context.Cause(r.Context()))
				case <-time.After(long):
				}
				_, _ = io.WriteString(w, "ends\n")
			})
			response := require.Value(http.ReadResponse(bufio.NewReader(s.say(t, text)), nil))(t)
			said, err := io.ReadAll(response.Body)
			assert.True(t, err == nil && string(said) == "begins\nends\n", "got %q, %v", said, err)
		})
	}
}

// TestAHandlerThatIsStuckInAWriteIsFreed stops the front while its client does not read. Both must end soon.
func TestAHandlerThatIsStuckInAWriteIsFreed(t *testing.T) {
	writes := func(w io.Writer) {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 1<<20))
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"an answer": func(w http.ResponseWriter, _ *http.Request) { writes(w) },
		"a hijacked connection": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			writes(conn)
		},
		"a connection that is hijacked late": func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(closeGrace / 2)
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				defer conn.Close()
				writes(conn)
			}
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			running := true
			s := serveIn(t, func(w http.ResponseWriter, r *http.Request) {
				handler(w, r)
				time.Sleep(time.Second) // the handler needs a second to clean up
				running = false
			})
			s.say(t, get)
			synctest.Wait()
			began := time.Now()
			s.stop()
			<-s.ended
			took := time.Since(began)
			assert.True(t, !running && took <= 3*closeGrace, "after %v: the handler runs: %v", took, running)
		})
	}
}

// TestARequestOnANewConnectionIsAnsweredWhileTheFrontEnds sends a first request after the front has begun to end.
func TestARequestOnANewConnectionIsAnsweredWhileTheFrontEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serveIn(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answered") })
		used := s.say(t, get) // this connection stays open for another request, and must not delay the front's end
		require.Value(http.ReadResponse(bufio.NewReader(used), nil))(t)
		late := s.say(t, "")
		synctest.Wait()
		s.stop()
		time.Sleep(closeGrace / 2)
		go func() { _, _ = io.WriteString(late, get) }()
		said, err := io.ReadAll(late)
		assert.True(t, strings.HasSuffix(string(said), "answered"), "got %q, %v", said, err)
		began := time.Now()
		<-s.ended
		assert.True(t, time.Since(began) <= closeGrace/2, "the front ended %v after the answer", time.Since(began))
	})
}

// poor is a listener whose Accept fails for lack of file descriptors while refuses counts down to 0.
type poor struct {
	net.Listener
	refuses int
}

func (p *poor) Accept() (net.Conn, error) {
	if p.refuses--; p.refuses >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return p.Listener.Accept()
}

// TestAFrontSaysOnceWhatItRetries expects one line from two fronts in a row, as when a viewer turns a switch.
func TestAFrontSaysOnceWhatItRetries(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var stderr strings.Builder
		log := newFrontLog(&stderr)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			f := &front{listener: &poor{pipenet.Listen(), 20}, fail: func(err error) { t.Error(err) }, log: log}
			time.AfterFunc(time.Minute, cancel)
			f.run(ctx)
		}
		log.Print("http: panic serving 127.0.0.1:5: boom")
		const want = "viz: http: Accept error: accept: accept4: too many open files; retrying in 5ms\n" +
			"viz: http: panic serving 127.0.0.1:5: boom\n"
		assert.Equal(t, want, stderr.String())
	})
}

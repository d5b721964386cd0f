package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/play/sandbox"
)

// soon is how long the program may take to end.
const soon = 3 * time.Second

// endSoon stops the program and fails the test unless it has ended soon, with status 0 and nothing left.
func (p *program) endSoon(t *testing.T) {
	t.Helper()
	began := time.Now()
	if status := p.end(t); status != exitOK {
		t.Errorf("status: got %d, want 0; stderr %q", status, p.stderr)
	}
	took := time.Since(began)
	assert.True(t, took <= soon, "took %v to end", took)
}

// watchOver opens a watch of all pods over a websocket. If narrow, neither end of the network holds more than a few
// events.
func (p *program) watchOver(t *testing.T, narrow bool) *websocket.Conn {
	t.Helper()
	dialer, agent := &websocket.Dialer{}, "test"
	if narrow {
		dialer.NetDialContext, agent = dialNarrow, sandbox.WatcherAgent+"0"
	}
	conn, _, err := dialer.Dial("ws"+strings.TrimPrefix(p.url, "http")+"/api/v1/pods?watch=true",
		http.Header{"User-Agent": {agent}})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// writing reports whether a handler is stuck writing to a websocket.
func writing() bool {
	stacks := make([]byte, 8<<20)
	for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "HandleWS") && strings.Contains(stack, "waitWrite") {
			return true
		}
	}
	return false
}

func TestAWebsocketIsToldThatTheServerEnds(t *testing.T) {
	p := start(t, "-demo=false", "-controllers=false", "-flight=off")
	conn := p.watchOver(t, false)
	p.endSoon(t)
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) ||
		!strings.Contains(err.Error(), "the server shuts down") {
		t.Errorf("got %v", err)
	}
}

func TestAWebsocketThatIsNotReadEndsWithItsHalf(t *testing.T) {
	p := start(t, "-demo=false", "-controllers=false", "-flight=off")
	stick := func() {
		p.watchOver(t, true)
		for i := 0; !writing(); i++ {
			p.patchPod(t, "a", fmt.Sprintf(`{"metadata":{"annotations":{"big":"%d%s"}}}`, i, strings.Repeat("x",
				100_000)))
		}
	}
	p.createPod(t, "a")
	stick()
	began := p.how(t)
	p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"delta"}`)
	p.startedAgain(t, began)
	eventually.Holds(t, "the old half writes no more", func() bool { return !writing() })
	stick()
	p.endSoon(t)
	assert.NoError(t, goleak.Find())
}

// TestTheProgramEndsWhateverItDoes stops it in a held world, with writes that wait, a story that plays, streams that
// are open and a body that does not come.
func TestTheProgramEndsWhateverItDoes(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("held %v", held), func(t *testing.T) {
			p := start(t, "-flight=off")
			var clients sync.WaitGroup
			ask := func(method, path, body string) {
				clients.Go(func() {
					request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, p.url+path,
						strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					request.Header.Set("Content-Type", "application/json")
					response, err := http.DefaultClient.Do(request)
					if err == nil {
						_, _ = io.Copy(io.Discard, response.Body)
						response.Body.Close()
					}
				})
			}
			ask("GET", "/viz/events", "")
			ask("GET", "/api/v1/pods?watch=true", "")
			p.watchOver(t, false)
			if !held {
				ask("POST", "/viz/scenario/slow-watcher", "")
			}
			code, body := p.post(t, "/viz/knobs", `{"name":"traffic.rate","value":"500"}`)
			assert.Equal(t, code, http.StatusOK, "traffic: %d %s", code, body)
			if held {
				p.post(t, "/viz/hold", `{"do":"hold"}`)
				ask("POST", "/viz/scenario/slow-watcher", "")
			}
			for i := range 10 {
				ask("POST", "/api/v1/namespaces/default/pods",
					fmt.Sprintf(`{"metadata":{"name":"w-%d"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, i))
			}
			ask("GET", "/api/v1/pods", "")
			target, err := url.Parse(p.url)
			require.NoError(t, err)
			silent, err := net.Dial("tcp", target.Host)
			require.NoError(t, err)
			defer silent.Close()
			fmt.Fprintf(silent,
				"POST /viz/knobs HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: "+
					"100\r\n\r\n{", target.Host)
			if held {
				eventually.Holds(t, "the writes wait", func() bool {
					_, body := p.get(t, "/viz/hold")
					return strings.Contains(body, "RequestReceived")
				})
			}
			p.endSoon(t)
			clients.Wait()
			if _, err := net.Dial("tcp", target.Host); err == nil {
				t.Error("the port is still open")
			}
		})
	}
}

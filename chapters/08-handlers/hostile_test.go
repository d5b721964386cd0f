package handlers

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

func TestANamespaceThatClimbsIsABadRequest(t *testing.T) {
	a := newAPI(t)
	const climbing = "/api/v1/namespaces/%2e%2e/pods"
	for _, c := range []struct{ method, path, body string }{
		{"GET", climbing + "/x", ""}, {"GET", climbing, ""}, {"GET", climbing + "?watch=1", ""},
		{"PUT", climbing + "/x", strings.Replace(podA, `"name":"a"`, `"name":"x"`, 1)},
		{"DELETE", climbing + "/x", ""}, {"DELETE", climbing, ""}, {"GET", climbing + "/x/status", ""},
	} {
		wantStatus(t, a.Do(c.method, c.path, c.body), 400, metav1.StatusReasonBadRequest)
	}
}

// raw sends bytes over a new connection, and returns all that comes within a minute or until the server closes it.
func raw(t *testing.T, client *http.Client, text string) string {
	t.Helper()
	conn := require.Value(client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "api"))(t)
	defer conn.Close()
	// A server that has heard enough does not read to the end.
	bubble.Go(t, "test.client", func(context.Context) { _, _ = io.WriteString(conn, text) })
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	answer, err := io.ReadAll(conn)
	if timeout, ok := err.(net.Error); err != nil && (!ok || !timeout.Timeout()) {
		t.Logf("read: %v", err)
	}
	return string(answer)
}

func TestRequestsThatAreNoneAreAnsweredAndForgotten(t *testing.T) {
	var headers strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&headers, "X-Header-%d: %s\r\n", i, strings.Repeat("v", 200))
	}
	const end = " HTTP/1.1\r\nHost: api\r\nConnection: close\r\n"
	get, post := "GET "+podsPath, "POST "+podsPath+end+"Content-Type: application/json\r\n"
	for name, c := range map[string]struct{ text, code string }{
		"not HTTP":            {"hello\r\n\r\n", "400"},
		"half a body":         {post + "Content-Length: 100\r\n\r\n{", "504"},
		"a body that lies":    {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
		"10 MB":               {post + "Content-Length: 10485760\r\n\r\n" + strings.Repeat(" ", 10<<20), "413"},
		"10,000 headers":      {get + end + headers.String() + "\r\n", "431"},
		"two lengths":         {post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "400"},
		"an unknown method":   {"BREW " + podsPath + end + "\r\n", "405"},
		"a path from above":   {"GET /api/v1/namespaces/../../etc" + end + "\r\n", "404"},
		"a name with a slash": {get + "/a%2Fb" + end + "\r\n", "404"},
		"a name with a zero":  {get + "/a%00b" + end + "\r\n", "404"},
		"no JSON":             {post + "Content-Length: 4\r\n\r\n{\"a\"", "400"},
		"deep JSON":           {post + "Content-Length: 200000\r\n\r\n" + strings.Repeat("[", 200_000), "400"},
		"an expectation":      {post + "Expect: the-impossible\r\nContent-Length: 1\r\n\r\n{", "417"},
		"half a watch":        {get + "?watch=1", ""},
		"a watch with a body": {get + "?watch=1&timeoutSeconds=1" + end + "Content-Length: 2\r\n\r\n{}", "200"},
		"a socket of no watch": {get + "?watch=1 HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\n" +
			"Upgrade: websocket\r\n\r\n", "400"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			answer, want := raw(t, newCachedAPI(t).serve(), c.text), ""
			if c.code != "" {
				want = "HTTP/1.1 " + c.code + " "
			}
			assert.True(t, strings.HasPrefix(answer, want), "got %.200q, want %q", answer, want)
		})
	}
}

// A world that is held stands until a viewer lets it go on. A client that does not read must not keep a handler for so
// long, nor the server that waits for the handler. In these tests the world's clock moves only by Step, and the
// bubble's is the patience.
func TestADeafClientIsNotWaitedForInAHeldWorld(t *testing.T) {
	type end func(w *watch.FakeWatcher, shutdown chan struct{}, world *testingclock.FakeClock)
	timeIsOver := func(w *watch.FakeWatcher, _ chan struct{}, world *testingclock.FakeClock) {
		for i := range 100 { // far more than the buffers of net/http hold
			w.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Annotations: map[string]string{
				"k": strings.Repeat("x", 10<<10)}}})
		}
		synctest.Wait()
		world.Step(time.Hour)
	}
	shuttingDown := func(_ *watch.FakeWatcher, shutdown chan struct{}, _ *testingclock.FakeClock) { close(shutdown) }
	for name, c := range map[string]struct {
		socket bool
		end    end
		within time.Duration
	}{
		"the goodbye of a websocket":                    {true, shuttingDown, goodbyeTime},
		"a frame, when the time of the watch is over":   {false, timeIsOver, writeGrace},
		"a message, when the time of the watch is over": {true, timeIsOver, writeGrace}, // no goodbye is written
	} {
		bubble.Run(t, name, func(t *testing.T) {
			world := testingclock.NewFakeClock(time.Now())
			watching, shutdown := watch.NewFakeWithChanSize(1000, false), make(chan struct{})
			client := clockedAPI(t, stuck{watching: watching}, shutdown, world).serve()
			const path = podsPath + "?watch=1&timeoutSeconds=3600"
			if c.socket {
				mustDial(t, client, path)
			} else {
				response := require.Value(client.Get("http://api" + path))(t)
				defer response.Body.Close()
			}
			c.end(watching, shutdown, world)
			time.Sleep(c.within - time.Millisecond)
			synctest.Wait()
			assert.False(t, watching.IsStopped(), "the client had no time to read")
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if !watching.IsStopped() {
				t.Errorf("after %v the handler still waits for its client", c.within)
				world.Step(time.Minute) // so that the test ends
			}
		})
	}
}

// An answer that is stuck is cut when the request's time is over in the world, and the grace in ours.
func TestAnAnswerThatNoClientReadsIsCutInAHeldWorld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		world, ended := testingclock.NewFakeClock(time.Now()), false
		server := New(Config{Clock: world, Patience: clock.RealClock{}})
		server.Handle(nil, http.MethodGet, "/large", "get", func(w http.ResponseWriter, _ *http.Request) {
			defer func() { ended = true }()
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})
		client := (&api{API: apitest.API{T: t, Handler: server}}).serveUntil(t.Context())
		response := require.Value(client.Get("http://api/large"))(t)
		defer response.Body.Close()
		synctest.Wait()
		world.Step(RequestTimeout)
		time.Sleep(writeGrace)
		synctest.Wait()
		if !ended {
			t.Error("the handler still writes")
			world.Step(time.Hour)
		}
	})
}

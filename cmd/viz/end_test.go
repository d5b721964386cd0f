package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"listwatch/cmd/internal/machine"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
)

// endsWell stops the program and fails the test unless the whole program ends by itself, with status 0. The clock that
// would make the program stop waiting does not move.
func (p *program) endsWell(t *testing.T) {
	t.Helper()
	assert.Equal(t, exitOK, p.end(t), "status; stderr %q", p.stderr)
}

// TestTheProgramEndsWhateverDoesNot has a handler compute forever, or a goroutine beside the machine wait forever. The
// program must end after 2.5 seconds on its clock, with a readable recording and without temporary files.
func TestTheProgramEndsWhateverDoesNot(t *testing.T) {
	for name, want := range map[string]string{
		"a handler computes": "front.request",
		"a goroutine waits":  "test.waits",
	} {
		t.Run(name, func(t *testing.T) {
			dir, tmp := t.TempDir(), t.TempDir()
			t.Setenv("TMPDIR", tmp)
			clk := clocktesting.NewFakeClock(time.Time{})
			end := &ending{clock: clk}
			file := filepath.Join(dir, "end.lw")
			var stderr strings.Builder
			o := require.Value(parseOptions([]string{"-listen", "127.0.0.1:0", "-record", file, "-flight=off",
				"-demo=false", "-controllers=false"}, &stderr))(t)
			o.end = end
			over := make(chan struct{})
			ready, ended, worked := make(chan string, 1), make(chan error, 1), make(chan struct{})
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				ended <- end.within(ctx, &stderr, func(ctx context.Context) error {
					defer close(worked)
					return stuck(ctx, o, name == "a goroutine waits", over, ready)
				})
			}()
			url := <-ready
			watch := require.Value(http.Get(url + "/api/v1/pods?watch=true"))(t)
			defer watch.Body.Close()
			if name == "a handler computes" {
				computes := require.Value(http.Get(url + "/computing"))(t)
				defer computes.Body.Close()
			}
			stop()
			require.NoError(t, assert.ErrorOf(io.Copy(io.Discard, watch.Body)), "the stream does not end well")
			for _, after := range []time.Duration{streamsEnd, waitingEnds - streamsEnd} {
				eventually.Holds(t, "the program waits", clk.HasWaiters)
				clk.Step(after)
			}
			require.NoError(t, <-ended)
			said := stderr.String()
			assert.True(t, strings.HasPrefix(said, "viz: ends without waiting for ") && strings.Contains(said, want) &&
				strings.Count(said, "\n") == 1, "got %q", said)
			assert.EqualSlices(t, nil, require.Value(os.ReadDir(tmp))(t), "files left behind")
			rec := require.Value(recording.Open(t.Context(), file))(t)
			assert.True(t, len(rec.Records) > 100, "recorded: %d", len(rec.Records))
			close(over)
			<-worked
		})
	}
}

// TestWhatIsLeftIsDoneInThreeSeconds leaves tasks, one of which hangs. Each must run once, the newest first.
func TestWhatIsLeftIsDoneInThreeSeconds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		over, began := make(chan struct{}), time.Now()
		var done []string
		note := func(what string) func() error {
			return func() error { done = append(done, what+" "+time.Since(began).String()); return nil }
		}
		end := &ending{clock: clock.RealClock{}}
		end.streams.add(note("streams"))
		end.last.add(func() error { <-over; return nil })
		end.last.add(note("etcd"))
		require.NoError(t, end.last.add(note("a run that has ended"))())
		end.last.add(note("recording"))
		ctx, stop := context.WithCancel(t.Context())
		stop()
		var stderr strings.Builder
		err := end.within(ctx, &stderr, func(context.Context) error {
			var others sync.WaitGroup
			others.Go(func() { <-over })
			others.Wait()
			return nil
		})
		assert.Equal(t, "viz: ends without waiting for viz.work\n", stderr.String())
		assert.True(t, err != nil && time.Since(began) == 3*time.Second, "%v after %v", err, time.Since(began))
		synctest.Wait() // now the goroutines that were left behind write no more notes
		assert.EqualSlices(t, []string{"a run that has ended 0s", "streams 1.5s", "recording 2.5s", "etcd 2.5s"}, done)
		close(over)
	})
}

func computing(over <-chan struct{}) {
	for n := 0; ; {
		select {
		case <-over:
			return
		default:
			n++
		}
	}
}

// stuck does the same as live, with a handler that begins its response and then computes until over is closed. If waits
// is true, a goroutine also waits until then.
func stuck(ctx context.Context, o *options, waits bool, over <-chan struct{}, ready chan<- string) error {
	listening, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	defer listening.Close()
	etcd, err := openEtcd(ctx, o)
	if err != nil {
		return err
	}
	closeEtcd := o.end.last.add(etcd.close)
	defer func() { _ = closeEtcd() }()
	host := o.host(etcd, listening.(*net.TCPListener), io.Discard)
	serve, beside := host.Serve, host.Beside
	host.Beside = func(ctx context.Context, group *routine.Group, run *machine.Run) {
		beside(ctx, group, run)
		if waits {
			group.Go(ctx, "test.waits", func(context.Context) { <-over })
		}
	}
	host.Serve = func(ctx context.Context, handler http.Handler, fail context.CancelCauseFunc) {
		serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/computing" {
				_ = http.NewResponseController(w).Flush()
				computing(over)
				return
			}
			handler.ServeHTTP(w, r)
		}), fail)
	}
	return machine.Serve(ctx, host, o.Options, func() { ready <- "http://" + listening.Addr().String() })
}

// watchOver opens a watch of all pods over a websocket. If narrow, both ends' buffers hold only a few events.
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

func TestAWebsocketThatIsNotReadEndsWithItsHalf(t *testing.T) {
	p := start(t, "-demo=false", "-controllers=false", "-flight=off")
	stick := func() {
		p.watchOver(t, true)
		for i := 0; !writing(); i++ {
			big := fmt.Sprintf(`{"metadata":{"annotations":{"big":"%d%s"}}}`, i, strings.Repeat("x", 100_000))
			code, body := p.ask(t, http.MethodPatch, "/api/v1/namespaces/default/pods/a",
				"application/merge-patch+json", big)
			require.Equal(t, http.StatusOK, code, body)
		}
	}
	p.createPod(t, "a")
	stick()
	began := p.how(t)
	p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"delta"}`)
	p.startedAgain(t, began)
	eventually.Holds(t, "the old half writes no more", func() bool { return !writing() })
	stick()
	p.endsWell(t)
	assert.NoError(t, goleak.Find())
}

// TestTheProgramEndsWhateverItDoes stops a program, running or held, in which a story plays, streams are open, and a
// request's body never arrives. In the held world writes wait, too. The program must end by itself and free its port.
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
			conn := p.watchOver(t, false)
			if !held {
				ask("POST", "/viz/scenario/slow-watcher", "")
			}
			code, body := p.post(t, "/viz/knobs", `{"name":"traffic.rate","value":"500"}`)
			assert.Equal(t, http.StatusOK, code, "traffic: %d %s", code, body)
			if held {
				p.post(t, "/viz/hold", `{"do":"hold"}`)
				ask("POST", "/viz/scenario/slow-watcher", "")
			}
			for i := range 10 {
				ask("POST", "/api/v1/namespaces/default/pods",
					fmt.Sprintf(`{"metadata":{"name":"w-%d"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, i))
			}
			ask("GET", "/api/v1/pods", "")
			target := require.Value(url.Parse(p.url))(t)
			silent := require.Value(net.Dial("tcp", target.Host))(t)
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
			p.endsWell(t)
			clients.Wait()
			_, err := net.Dial("tcp", target.Host)
			assert.True(t, err != nil, "the port is still open")
			for err = nil; err == nil; {
				_, _, err = conn.ReadMessage()
			}
			assert.True(t, held || websocket.IsCloseError(err, websocket.CloseGoingAway) &&
				strings.Contains(err.Error(), "the server shuts down"), "the end of the websocket: %v", err)
		})
	}
}

// TestTheClientHalfKeepsUp writes as fast as eight clients can. The server must not evict the client half, and no
// reflector may begin again. With a ring of this size, a watcher's channels each hold about a hundred events: enough
// for a moment in which a busy machine does not run the program, but far too few for a client that reads slowly.
func TestTheClientHalfKeepsUp(t *testing.T) {
	const clients, each = 8, 250
	p := start(t, "-demo=false", "-controllers=false", "-flight=off", "-ring-capacity=8192")
	before := p.pods(t)
	var writers sync.WaitGroup
	began := time.Now()
	for client := range clients {
		writers.Go(func() {
			for i := range each {
				p.createPod(t, fmt.Sprintf("p-%d-%d", client, i))
			}
		})
	}
	writers.Wait()
	took := time.Since(began)
	began = time.Now()
	eventually.Holds(t, "the informer holds all pods", func() bool {
		_, body := p.get(t, "/viz/state")
		var now struct {
			Client struct {
				Informer struct{ Indexer struct{ Objects int } }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &now))
		return now.Client.Informer.Indexer.Objects >= clients*each
	})
	t.Logf("%d pods created in %v; the informer held the last one %v later", clients*each, took, time.Since(began))
	after := p.pods(t)
	for _, point := range []string{"WatcherForced", "ReflectorListed", "ReflectorWatchEnded"} {
		assert.True(t, before[point] == after[point], "%s: %d before, %d after", point, before[point], after[point])
	}
	p.end(t)
}

// pods returns how often each point has been reported for the resource pods.
func (p *program) pods(t *testing.T) map[string]int {
	t.Helper()
	_, body := p.get(t, "/viz/snapshot")
	var snapshot struct {
		State struct {
			Resources map[string]struct{ Points map[string]int }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &snapshot))
	return snapshot.State.Resources["pods"].Points
}

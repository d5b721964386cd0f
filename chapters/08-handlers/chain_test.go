package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/pipenet"
)

// stuck is a storage whose gets last until their context ends, whose deletes panic, and whose watch is a given one.
type stuck struct {
	resource *registry.Resource
	watching watch.Interface
}

func (s stuck) Describe() *registry.Resource { return s.resource }
func (s stuck) New() runtime.Object          { return s.resource.NewFunc() }

func (s stuck) Get(ctx context.Context, _, _ string, _ *metav1.GetOptions) (runtime.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s stuck) Delete(context.Context, string, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	panic("no <b>idea</b>")
}

func (s stuck) List(context.Context, string, *metainternalversion.ListOptions) (runtime.Object, error) {
	return s.resource.NewListFunc(), nil
}

func (s stuck) Watch(context.Context, string, *metainternalversion.ListOptions) (watch.Interface, error) {
	return s.watching, nil
}

func (s stuck) Create(ctx context.Context, _ string, _ runtime.Object,
	options *metav1.CreateOptions) (runtime.Object, error) {
	if options.FieldManager == "waits" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, io.ErrUnexpectedEOF
}

func stuckAPI(t *testing.T, s stuck, shutdown <-chan struct{}) *api {
	return clockedAPI(t, s, shutdown, clock.RealClock{})
}

// clockedAPI is stuckAPI in a world with a clock of its own. Its patience is the bubble's clock.
func clockedAPI(t *testing.T, s stuck, shutdown <-chan struct{}, world clock.WithTicker) *api {
	s.resource = registry.Pods()
	return &api{API: apitest.API{T: t, Handler: New(Config{
		Storage: map[string]Storage{"pods": s}, Clock: world, Patience: clock.RealClock{},
		Shutdown: shutdown,
	})}}
}

// hanging is an open watch on which nothing happens.
type hanging struct {
	watching *watch.FakeWatcher
	shutdown chan struct{}
	leave    func()          // the client goes
	conn     *websocket.Conn // nil: it is no websocket
}

func hang(t *testing.T, socket bool) *hanging {
	t.Helper()
	h := &hanging{watching: watch.NewFakeWithChanSize(10, false), shutdown: make(chan struct{})}
	client := stuckAPI(t, stuck{watching: h.watching}, h.shutdown).serve()
	const path = podsPath + "?watch=1&timeoutSeconds=3600"
	if socket {
		h.conn = mustDial(t, client, path)
		h.leave = func() { h.conn.Close() }
		return h
	}
	response := require.Value(client.Get("http://api" + path))(t)
	h.leave = func() { response.Body.Close() }
	t.Cleanup(h.leave)
	return h
}

func TestARequestThatTakesTooLongTimesOutAndAWriteSooner(t *testing.T) {
	const get, post = "GET " + podsPath + "/a", "POST " + podsPath + "?fieldManager=waits"
	for request, want := range map[string]time.Duration{
		get: time.Minute, get + "?timeout=5s": 5 * time.Second, get + "?timeout=1h": time.Minute,
		get + "?timeout=0": time.Minute, post: writeTimeout, post + "&timeout=5s": 5 * time.Second,
		post + "&timeout=40s": 34 * time.Second,
	} {
		bubble.Run(t, request, func(t *testing.T) {
			started := time.Now()
			method, path, _ := strings.Cut(request, " ")
			w := stuckAPI(t, stuck{}, nil).Do(method, path, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)
			wantStatus(t, w, 504, metav1.StatusReasonTimeout)
			assert.Equal(t, want, time.Since(started), "took")
		})
	}
}

func TestAPanicBecomesAStatus(t *testing.T) {
	status := wantStatus(t, stuckAPI(t, stuck{}, nil).Do("DELETE", podsPath+"/a", ""), 500,
		metav1.StatusReasonInternalError)
	assert.True(t, strings.Contains(status.Message, "panic"), "message: got %q", status.Message)
}

func TestAnErrorNobodyThoughtOfHasNoReason(t *testing.T) {
	wantStatus(t, stuckAPI(t, stuck{}, nil).Do("POST", podsPath, podA), 500, "")
}

func TestWhatTheStorageCannotDoHasNoRoute(t *testing.T) {
	a := stuckAPI(t, stuck{}, nil)
	wantStatus(t, a.Do("PATCH", podsPath+"/a", "{}"), 405, metav1.StatusReasonMethodNotAllowed)
	wantStatus(t, a.Do("PUT", podsPath+"/a", podA), 405, metav1.StatusReasonMethodNotAllowed)
}

func TestTheLogHasNoCredentialsOfARequest(t *testing.T) {
	for query, want := range map[string]string{
		"":                                "",
		"?limit=1&continue=abc":           "?limit=1&continue=abc",
		"?access_token=hunter2&limit=1":   "?access_token=***&limit=1",
		"?%74oken=hunter2":                "?%74oken=***",
		"?X-Amz-Signature=hunter2&x":      "?X-Amz-Signature=***&***",
		"?labelSelector=app%3Dweb&pretty": "?labelSelector=app%3Dweb&pretty",
	} {
		t.Run(query, func(t *testing.T) {
			a := newAPI(t)
			a.Do("GET", podsPath+query, "", "Authorization", "Bearer hunter2", "Cookie", "hunter2")
			for _, got := range a.recorded(probe.RequestReceived, probe.RequestAnswered) {
				assert.True(t, !strings.Contains(got, "hunter2") && strings.HasSuffix(got, "GET "+podsPath+want),
					"got %q, want it to end in %q", got, podsPath+want)
			}
		})
	}
}

// askTwice serves the first request with handler, under a deadline of a minute, and those after it at once. It returns
// the codes of two requests over one client; 0 is a connection that was cut.
func askTwice(t *testing.T, handler http.HandlerFunc) (codes [2]int) {
	listener := pipenet.Listen()
	asked := New(Config{Clock: clock.RealClock{}})
	first := true
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !first {
			return
		}
		first = false
		ctx, done := asked.withDeadline(w, r, time.Minute, false)
		defer done()
		handler(w, r.WithContext(ctx))
	})}
	var group routine.Group
	group.Go(t.Context(), "test.server", func(context.Context) { _ = server.Serve(listener) })
	client := listener.Client()
	for i := range codes {
		response, err := client.Get("http://pipe/")
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body) // or the connection would not be kept
		response.Body.Close()
		codes[i] = response.StatusCode
	}
	client.CloseIdleConnections()
	_ = server.Close()
	group.Wait()
	synctest.Wait()
	return codes
}

// A connection whose read was made to fail, so that a stuck request ends, has no use for the requests that follow: they
// would be served with a context that is done. It must not be kept.
func TestAfterADeadlineTheNextRequestIsServed(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   [2]int
	}{
		"it says so in its header": {func(w http.ResponseWriter) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(504)
		}, [2]int{504, 200}},
		"it says nothing": {func(http.ResponseWriter) {}, [2]int{0, 200}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			started := time.Now()
			got := askTwice(t, func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				assert.True(t, errors.Is(context.Cause(r.Context()), errDeadlineExceeded) &&
					time.Since(started) == time.Minute,
					"after %v: got %v", time.Since(started), context.Cause(r.Context()))
				c.answer(w)
			})
			assert.Equal(t, c.want, got)
		})
	}
}

// Whatever a client sends, it is told what is wrong with it: nothing here may become a 500.
func FuzzBodies(f *testing.F) {
	f.Add("application/json", []byte(podA))
	f.Add("application/yaml", []byte("kind: Pod\nmetadata: {name: a}\n"))
	f.Add("application/vnd.kubernetes.protobuf", []byte("k8s\x00\n\x06\n\x02v1\x12\x00"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		a := newAPI(t)
		w := a.Do("POST", podsPath, string(body), "Content-Type", contentType)
		assert.True(t, w.Code < 500, "got %d %s", w.Code, w.Body)
	})
}

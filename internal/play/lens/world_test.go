package lens

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

// world is one of our servers in a bubble, behind a lens. Time passes in the bubble only while every program waits.
type world struct {
	t      *testing.T
	ctx    context.Context // ends before the lens does
	server http.Handler
	busy   atomic.Bool // whether the server answers 429 with Retry-After: 1
	lens   *Lens
	client *http.Client // sends to the lens
	writes int
	// The version of the first list, and the newest in any response or event, the test's own writes included.
	old, new string
}

const (
	historySize = 4 // events in each cache's history
	podsPath    = "/api/v1/namespaces/default/pods"
)

// inWorld runs body in a bubble, in a world whose server has a pod and a config map, each named default/a.
func inWorld(t *testing.T, body func(w *world)) {
	bubble.Test(t, func(t *testing.T) {
		clk := clock.RealClock{} // the bubble's clock
		server := require.Value(pipeline.NewServer(pipeline.ServerConfig{Client: mvcc.New(clk),
			Handler: apiserver.Handler(nil), Clock: clk, UseWatchList: true, RingCapacity: historySize}))(t)
		defer bubble.Go(t, "test.server", server.Run)()
		require.NoError(t, server.WaitReady(t.Context()))
		var near, far pipenet.Network
		w := &world{t: t, server: server.Handler(), lens: New(Config{
			Servers: []*url.URL{{Scheme: "http", Host: "server"}}, Writes: true, Clock: clk})}
		// The connections have buffers. Without them a write would block while ReverseProxy's first flush waits for a
		// mutex, and a bubble's time does not pass while a goroutine waits for a mutex.
		_, w.client = near.Lines()
		w.lens.transport.DialContext = far.Client().Transport.(*http.Transport).DialContext
		for _, each := range [][2]string{
			{"/api/v1/namespaces/default/configmaps", `"v1","kind":"ConfigMap"`},
			{podsPath, `"v1","kind":"Pod","spec":{"containers":[{"name":"c","image":"c"}]}`},
		} {
			w.direct(http.MethodPost, each[0], `{"metadata":{"name":"a"},"apiVersion":`+each[1]+"}")
		}
		fail := func(err error) { t.Error(err) }
		for _, run := range []func(context.Context){
			func(ctx context.Context) { far.Serve(ctx, http.HandlerFunc(w.answer), fail) },
			w.lens.Run,
			func(ctx context.Context) { near.Serve(ctx, w.lens, fail) },
		} {
			defer bubble.Go(t, "test.world", run)()
		}
		defer w.client.CloseIdleConnections()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.ctx = ctx
		synctest.Wait()
		body(w)
	})
}

func (w *world) answer(out http.ResponseWriter, r *http.Request) {
	if !w.busy.Load() {
		w.server.ServeHTTP(out, r)
		return
	}
	out.Header().Set("Retry-After", "1")
	out.WriteHeader(http.StatusTooManyRequests)
}

// direct sends a request to the server, bypassing the lens.
func (w *world) direct(method, path, body string) {
	w.t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Content-Type", contentTypes[method])
	answer := httptest.NewRecorder()
	w.server.ServeHTTP(answer, request)
	require.True(w.t, answer.Code/100 == 2, "%s %s: %d %s", method, path, answer.Code, answer.Body)
	w.learn(answer.Body.Bytes())
	synctest.Wait() // waits for the caches
}

var contentTypes = map[string]string{
	http.MethodPost: "application/json", http.MethodPatch: "application/merge-patch+json",
}

// learn returns the version of an object or a list, and saves it in w.new if it is the newest so far.
func (w *world) learn(answer []byte) string {
	var got metav1.PartialObjectMetadata
	if json.Unmarshal(answer, &got) == nil && older(w.new, got.ResourceVersion) {
		w.new = got.ResourceVersion
	}
	return got.ResourceVersion
}

// age changes the pod so often that the caches' histories lose all its versions before this call.
func (w *world) age() {
	for range historySize + 1 {
		w.change()
	}
}

// change changes the pod, as another program would.
func (w *world) change() {
	w.writes++
	w.direct(http.MethodPatch, podsPath+"/a", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, w.writes))
}

// fill changes the pod, as another program would, and makes it larger than the connection's buffer.
func (w *world) fill() {
	w.direct(http.MethodPatch, podsPath+"/a", fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d%s"}}}`, w.writes,
		strings.Repeat("x", 30_000)))
	w.writes++
}

// says returns the lens's findings so far.
func (w *world) says() []Finding {
	synctest.Wait()
	return w.lens.Report().Findings
}

func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// program is a client of one resource. It writes HTTP requests itself, to make mistakes that libraries prevent.
type program struct {
	*world
	name, resource string
}

// as returns a program with this name and resource.
func (w *world) as(name, resource string) *program { return &program{w, name, resource} }

// send sends a GET of all objects, and returns the response.
func (p *program) send(query string) *http.Response {
	p.t.Helper()
	target := "http://lens/api/v1/" + p.resource + "?" + query
	request := require.Value(http.NewRequestWithContext(p.ctx, http.MethodGet, target, nil))(p.t)
	request.Header.Set("User-Agent", p.name)
	response := require.Value(p.client.Do(request))(p.t)
	require.Equal(p.t, http.StatusOK, response.StatusCode)
	return response
}

// list lists at a version, and returns the list's version.
func (p *program) list(version string) string {
	p.t.Helper()
	answer := require.Value(io.ReadAll(p.send("resourceVersion=" + version).Body))(p.t)
	synctest.Wait() // waits until the lens has seen the end of the response
	got := p.learn(answer)
	p.old = cmp.Or(p.old, got)
	return got
}

// stream is an open watch.
type stream struct {
	*program
	response *http.Response
	frames   *json.Decoder
}

// open opens a watch with the query.
func (p *program) open(query string) *stream {
	p.t.Helper()
	response := p.send("watch=true&" + query)
	synctest.Wait()
	return &stream{p, response, json.NewDecoder(response.Body)}
}

// frame is a frame of a watch. A frame without a type is the end of the stream.
type frame struct {
	Type   string
	Object struct {
		metav1.PartialObjectMetadata
		Code int
	}
}

// next returns the next frame, or one without a type at the end of the stream.
func (s *stream) next() (f frame) {
	if s.frames.Decode(&f) == nil && older(s.new, f.Object.ResourceVersion) {
		s.new = f.Object.ResourceVersion
	}
	synctest.Wait()
	return f
}

// follow reads on another goroutine until the stream ends.
func (s *stream) follow() { go func() { _, _ = io.Copy(io.Discard, s.response.Body) }() }

func (s *stream) leave() {
	s.response.Body.Close()
	synctest.Wait()
}

// watch watches until the server ends the watch after two seconds, and returns the last frame.
func (p *program) watch(query string) (last frame) {
	p.t.Helper()
	s := p.open("timeoutSeconds=2&" + query)
	defer s.leave()
	for f := s.next(); f.Type != ""; f = s.next() {
		last = f
	}
	return last
}

// gone opens a watch, and requires that its last frame is a 410.
func (p *program) gone(query string) {
	p.t.Helper()
	last := p.watch(query)
	require.Equal(p.t, http.StatusGone, last.Object.Code)
}

package listwatch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/chapterdrawing"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/pipenet"
)

func TestAttemptsWaitsAndAnswersAreCountedUnderUpstreamsNames(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := 0
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1"}`))
		})
		registry := prometheus.NewRegistry()
		c := NewRESTClient(Config{
			Base: &url.URL{Scheme: "http", Host: "api"}, HTTP: s.client, Clock: clock.RealClock{}, QPS: 1, Burst: 1,
			Metrics: NewMetrics(registry),
		})
		require.NoError(t, c.Post().Resource("pods").Body([]byte(`{}`)).Do(t.Context()).Error())
		s.stop()
		assert.True(t, c.Put().Resource("pods").Name("a").Body([]byte(`{}`)).Do(t.Context()).Error() != nil,
			"got an answer of a server that is gone")
		page := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page,
			httptest.NewRequest("GET", "/metrics", nil))
		for _, want := range []string{
			`rest_client_requests_total{code="200",host="api",method="POST"} 1`,
			`rest_client_requests_total{code="503",host="api",method="POST"} 1`,
			`rest_client_requests_total{code="<error>",host="api",method="PUT"} 1`,
			`rest_client_request_retries_total{code="503",host="api",verb="POST"} 1`,
			// what the server asked for; a token has come meanwhile
			`rest_client_request_duration_seconds_sum{host="api",verb="POST"} 2`,
			`rest_client_request_duration_seconds_count{host="api",verb="POST"} 1`,
			`rest_client_rate_limiter_duration_seconds_sum{host="api",verb="PUT"} 1`,
			`rest_client_request_size_bytes_sum{host="api",verb="POST"} 4`,
			`rest_client_response_size_bytes_sum{host="api",verb="POST"} 32`,
		} {
			assert.True(t, strings.Contains(page.Body.String(), want+"\n"), "no line %s in\n%s", want, page.Body)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an HTTP server inside a bubble. It writes down what it is asked, and when.
type server struct {
	client     *http.Client
	start      time.Time
	listener   *pipenet.Listener
	httpServer *http.Server

	serving, nDials atomic.Int64

	mu    sync.Mutex // guards asked
	asked []string
}

func serve(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{start: time.Now(), listener: pipenet.Listen()}
	s.client = &http.Client{Transport: &http.Transport{DialContext: s.dial}}
	s.httpServer = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		defer s.serving.Add(-1)
		handler(w, r)
	})}
	new(routine.Group).Go(t.Context(), "test.server", func(context.Context) { _ = s.httpServer.Serve(s.listener) })
	t.Cleanup(func() { s.client.CloseIdleConnections(); s.stop() })
	return s
}

// stop breaks every connection and refuses new ones.
func (s *server) stop() {
	s.listener.Close()
	s.httpServer.Close()
}

func (s *server) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.nDials.Add(1)
	return s.listener.Dial(ctx, network, address)
}

// wantIdle fails the test if a request has not been answered yet.
func (s *server) wantIdle(t *testing.T) {
	t.Helper()
	synctest.Wait()
	assert.Equal(t, 0, s.serving.Load(), "requests that the server is serving")
}

func (s *server) note(r *http.Request) {
	s.serving.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("%v %s %s", time.Since(s.start), r.Method, r.URL))
}

// log returns what was asked so far and forgets it.
func (s *server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := strings.Join(s.asked, "\n")
	s.asked = nil
	return asked
}

// rest returns a client of the server, without a limit of its own.
func (s *server) rest(change func(*Config)) *RESTClient {
	config := Config{Base: &url.URL{Scheme: "http", Host: "server"}, HTTP: s.client, QPS: -1, Clock: clock.RealClock{}}
	if change != nil {
		change(&config)
	}
	return NewRESTClient(config)
}

func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: rv},
	}
}

func frame(typ watch.EventType, obj runtime.Object) string {
	data, err := runtime.Encode(encoder, obj)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", typ, strings.TrimSpace(string(data)))
}

// streaming answers with frames and then waits for the client to go away.
func streaming(frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		for _, frame := range frames {
			fmt.Fprint(w, frame)
		}
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// frameless ends the stream without a frame.
func frameless() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Type", "application/json") }
}

// collect receives until the watch is closed and says what it was.
func collect(w watch.Interface) string {
	var events []string
	for event := range w.ResultChan() {
		events = append(events, describe(event))
	}
	return strings.Join(events, " ")
}

func describe(event watch.Event) string {
	switch obj := event.Object.(type) {
	case *corev1.Pod:
		return fmt.Sprintf("%s %s@%s", event.Type, obj.Name, obj.ResourceVersion)
	case *metav1.Status:
		cause := ""
		if obj.Details != nil && len(obj.Details.Causes) > 0 {
			cause = " " + string(obj.Details.Causes[len(obj.Details.Causes)-1].Type)
		}
		return fmt.Sprintf("%s %d%s", event.Type, obj.Code, cause)
	default:
		return fmt.Sprintf("%s %T", event.Type, obj)
	}
}

// The drawing of the queue that is missing: a reader takes two events and no more, over a connection without a buffer.
func TestTheDrawingOfTheMissingQueueIsOfThisClient(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var written atomic.Int64
		w := openWatch(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for n := 1; r.Context().Err() == nil; n++ {
				if _, err := fmt.Fprint(w, frame(watch.Added, pod("a", strconv.Itoa(n)))); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				written.Add(1)
			}
		}))
		const read = 2
		for range read {
			<-w.ResultChan()
		}
		synctest.Wait()
		before := written.Load()
		time.Sleep(time.Hour)
		after := written.Load()
		w.Stop()
		require.Equal(t, before, after, "frames that the server has written in an hour without a reader")

		d := chapterdrawing.New("no-queue.svg", 236)
		box := func(x, width int, kind, name, says string) {
			d.In(kind, func() { d.Box(x, 60, width, 66, "wall") })
			d.Text(x+width/2, 44, "mid soft", "%s", name)
			d.Text(x+width/2, 98, "mid", "%s", says)
		}
		box(16, 164, "acts", "the server’s handler", "waits in Write")
		box(226, 120, "queue", "the connection", "full")
		box(392, 110, "acts", "StreamWatcher", "waits")
		box(548, 76, "acts", "reflector", fmt.Sprintf("has %d", read))
		d.Arrow("way", "M180 93H222")
		d.Arrow("way", "M346 93H388")
		d.Arrow("way later", "M502 93H544")
		d.Text(523, 146, "mid soft", "result: 0 places")
		d.Text(16, 186, "", "The reflector took %d events. The server wrote %d, and none more in an hour:", read,
			before)
		d.Text(16, 210, "", "what has not been taken is in the connection and in the StreamWatcher’s hands.")
		d.Check(t)
	})
}

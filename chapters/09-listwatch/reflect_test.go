package listwatch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
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

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/pipenet"
)

// podServer is an API server with one pod, "a", at version 5, whose watches from 5 bring "b" at 6.
func podServer(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case query.Get("watch") == "":
		answer(200, "application/json", "", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},
			"items":[{"metadata":{"namespace":"default","name":"a","resourceVersion":"3"}}]}`)(w, r)
	case query.Get("resourceVersion") == "5":
		streaming(frame(watch.Added, pod("b", "6")))(w, r)
	default:
		streaming()(w, r)
	}
}

func TestReflectorOverHTTPOutlivesARestartOfTheServerWithoutAList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, podServer)
		store := &names{}
		stop := reflect(t, s, store)
		time.Sleep(10 * time.Second)
		s.stop()
		time.Sleep(5 * time.Second) // refused at 0, 0.8, 2.4 s
		s.run(t, podServer)
		time.Sleep(time.Minute) // accepted at 5.6 s
		stop()

		want := list + "\n0s " + watchFrom + "5" + lasting + "\n15.6s " + watchFrom + "6" + lasting
		assert.NoDiff(t, want, s.log(), "asked")
		assert.Equal(t, "[replace a at 5 add b]", fmt.Sprint(store.told), "store")
		s.wantServing(t, 0)
	})
}

// What a reflector of pods asks for.
const (
	list      = "0s GET /api/v1/pods?limit=500&resourceVersion=0"
	watchFrom = "GET /api/v1/pods?allowWatchBookmarks=true&resourceVersion="
	lasting   = "&timeout=5m0s&timeoutSeconds=300&watch=true"
)

// reflect runs a reflector of the server's pods until stop is called.
func reflect(t *testing.T, s *server, store reflector.Store) (stop func()) {
	r := reflector.New(reflector.Config{
		Name: "pods", ListerWatcher: s.rest(nil).ListWatch("pods", "", nil), Store: store,
		ExpectedType: &corev1.Pod{}, Clock: clock.RealClock{}, Jitter: func() float64 { return 0 },
	})
	return bubble.Go(t, "reflector.Run", r.Run)
}

// names is a Store that keeps the names it is told. The reflector calls it from one goroutine.
type names struct{ told []string }

func (s *names) tell(what string, obj any) error {
	s.told = append(s.told, what+" "+obj.(*corev1.Pod).Name)
	return nil
}

func (s *names) Add(obj any) error    { return s.tell("add", obj) }
func (s *names) Update(obj any) error { return s.tell("update", obj) }
func (s *names) Delete(obj any) error { return s.tell("delete", obj) }
func (s *names) Resync() error        { return nil }

func (s *names) Replace(list []any, resourceVersion string) error {
	for _, obj := range list {
		s.told = append(s.told, fmt.Sprintf("replace %s at %s", obj.(*corev1.Pod).Name, resourceVersion))
	}
	return nil
}

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
	client *http.Client

	mu      sync.Mutex
	start   time.Time
	asked   []string
	serving int
	nDials  int

	listener   *pipenet.Listener
	httpServer *http.Server
}

func serve(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{start: time.Now()}
	s.client = &http.Client{Transport: &http.Transport{DialContext: s.dial}}
	s.run(t, handler)
	t.Cleanup(func() { s.client.CloseIdleConnections(); s.stop() })
	return s
}

// run begins to serve, again after stop.
func (s *server) run(t *testing.T, handler http.HandlerFunc) {
	httpServer := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		defer s.addServing(-1)
		handler(w, r)
	})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener, s.httpServer = pipenet.Listen(), httpServer
	listener := s.listener
	new(routine.Group).Go(t.Context(), "test.server", func(context.Context) { _ = httpServer.Serve(listener) })
}

// stop breaks every connection and refuses new ones.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener.Close()
	s.httpServer.Close()
}

func (s *server) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.noteDial().Dial(ctx, network, address)
}

func (s *server) noteDial() *pipenet.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nDials++
	return s.listener
}

func (s *server) addServing(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving += n
}

// wantServing checks how many requests have not been answered yet.
func (s *server) wantServing(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, want, s.serving, "the server is serving %d requests, want %d", s.serving, want)
}

func (s *server) note(r *http.Request) {
	s.addServing(1)
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

// sending answers with frames and ends the stream.
func sending(frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, frame := range frames {
			fmt.Fprint(w, frame)
		}
	}
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

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

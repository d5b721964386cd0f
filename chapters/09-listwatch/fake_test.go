package listwatch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/pipenet"
)

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
	s.run(handler)
	t.Cleanup(func() { s.client.CloseIdleConnections(); s.stop() })
	return s
}

// run begins to serve, again after stop.
func (s *server) run(handler http.HandlerFunc) {
	httpServer := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		defer s.addServing(-1)
		handler(w, r)
	})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener, s.httpServer = pipenet.Listen(), httpServer
	listener := s.listener
	new(routine.Group).Go(context.Background(), "test.server", func(context.Context) { _ = httpServer.Serve(listener) })
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
	assert.Equal(t, s.serving, want, "the server is serving %d requests, want %d", s.serving, want)
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

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/handlertest"
	"listwatch/internal/check/require"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

// site is a server half that can be restarted, and an informer of the pods with app=x that sees
// it through a wire that breaks on order.
type site struct {
	store    *mvcc.Store // what survives
	capacity int         // of the server's rings
	listener atomic.Pointer[pipenet.Listener]
	stop     func() // of the server that runs: a crash
	end      func() // the same, its streams: how an orderly end begins
	wire     *wire
	client   *listwatch.RESTClient // a client whose wire does not break
	informer *informer.SharedIndexInformer
	handler  *handlertest.Follower
}

// inSite runs body in a bubble with a server and an informer that has synced.
func inSite(t *testing.T, fifo string, watchList bool, capacity int,
	body func(t *testing.T, s *site)) {
	bubble.Test(t, func(t *testing.T) {
		s := &site{store: mvcc.New(clock.RealClock{}), capacity: capacity,
			handler: &handlertest.Follower{
				Wants: func(pod *corev1.Pod) bool { return pod.Labels["app"] == "x" }}}
		transport := &http.Transport{DialContext: s.dial}
		s.wire = newWire(transport)
		s.client = s.rest(transport)
		s.startServer(t)
		s.informer = informer.NewSharedIndexInformer(informer.Config{
			Name: "pods", Clock: clock.RealClock{}, ExampleObject: &corev1.Pod{}, FIFO: fifo,
			UseWatchList: watchList,
			ListerWatcher: s.rest(s.wire).ListWatch("pods", metav1.NamespaceAll,
				func(opts *metav1.ListOptions) { opts.LabelSelector = "app=x" }),
		})
		_, err := s.informer.AddEventHandler(s.handler)
		require.NoError(t, err)
		stop := bubble.Go(t, "informer.Run", s.informer.Run)
		defer func() {
			stop()
			transport.CloseIdleConnections()
			s.stop()
		}()
		informer.WaitFor(t.Context(), s.informer.HasSyncedChecker())
		body(t, s)
	})
}

func (s *site) rest(transport http.RoundTripper) *listwatch.RESTClient {
	return listwatch.NewRESTClient(listwatch.Config{
		Base: &url.URL{Scheme: "http", Host: "pipe"}, HTTP: &http.Client{Transport: transport},
		Clock: clock.RealClock{}, QPS: -1,
	})
}

func (s *site) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.listener.Load().Dial(ctx, network, address)
}

// startServer starts a server half on what is in the store. Its caches know nothing of the
// past.
func (s *site) startServer(t *testing.T) {
	t.Helper()
	server, err := NewServer(ServerConfig{Client: s.store, Handler: apiserver.Handler(nil),
		Clock: clock.RealClock{}, UseWatchList: true,
		RingCapacity: s.capacity})
	require.NoError(t, err)
	listener := pipenet.Listen()
	s.listener.Store(listener)
	ctx, cancel := context.WithCancel(t.Context())
	var serverRuns sync.WaitGroup
	front := &crashingFront{handler: server.Handler()}
	httpServer := &http.Server{Handler: front, BaseContext: func(net.Listener) context.Context { return ctx }}
	serverRuns.Go(func() { server.Run(ctx) })
	serverRuns.Go(func() { httpServer.Serve(listener) })
	s.end = server.EndStreams
	s.stop = func() {
		front.refuse()
		httpServer.Close() // a crash, as seen from outside: all connections break
		front.requests.Wait()
		cancel()
		serverRuns.Wait()
	}
	require.NoError(t, server.WaitReady(t.Context()))
	// The clients have noticed by now which of their connections broke: none will send a write
	// over such a one, which cannot be tried again.
	synctest.Wait()
}

// crashingFront passes requests on until it is told to refuse. requests are those that were
// passed on and have not ended.
type crashingFront struct {
	handler  http.Handler
	requests sync.WaitGroup

	mu       sync.Mutex // guards refusing
	refusing bool
}

func (f *crashingFront) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusing = true
}

func (f *crashingFront) admit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.refusing {
		f.requests.Add(1)
	}
	return !f.refusing
}

func (f *crashingFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.admit() {
		panic(http.ErrAbortHandler)
	}
	defer f.requests.Done()
	f.handler.ServeHTTP(w, r)
}

// set creates or changes a pod; visible says whether the informer's selector selects it.
func (s *site) set(t *testing.T, name string, visible bool) {
	t.Helper()
	app := "y"
	if visible {
		app = "x"
	}
	body := fmt.Appendf(nil, `{"metadata":{"labels":{"app":%q},"annotations":{"now":%q}}}`, app,
		time.Now().Format(time.RFC3339Nano))
	err := s.client.Patch(types.MergePatchType).Namespace("default").Resource("pods").Name(name).Body(body).
		Do(t.Context()).Error()
	if err == nil {
		return
	}
	pod := podNamed(name, corev1.RestartPolicyAlways)
	pod.Labels["app"] = app
	require.NoError(t, s.client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
}

// remove deletes a pod, if it is there.
func (s *site) remove(t *testing.T, name string) {
	zero := int64(0)
	s.client.Delete().Namespace("default").Resource("pods").Name(name).Body(&metav1.DeleteOptions{
		GracePeriodSeconds: &zero}).Do(t.Context())
}

// check compares what the server has with what the informer stores and what its handler was
// told.
func (s *site) check(t *testing.T, when string) {
	t.Helper()
	synctest.Wait()
	var list corev1.PodList
	err := s.client.Get().Resource("pods").VersionedParams(&metav1.ListOptions{LabelSelector: "app=x"}).
		Do(t.Context()).Into(&list)
	require.NoError(t, err, when)
	want := map[string]string{}
	for i := range list.Items {
		want["default/"+list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	stored := map[string]string{}
	for _, obj := range s.informer.GetIndexer().List() {
		stored["default/"+obj.(*corev1.Pod).Name] = obj.(*corev1.Pod).ResourceVersion
	}
	require.Equal(t, "", cmp.Diff(want, stored), "%s: store (-server +store):\n", when)
	told, _, strange := s.handler.Read()
	require.Equal(t, "", cmp.Diff(want, told), "%s: handler (-server +handler):\n", when)
	require.True(t, len(strange) == 0, "%s: the handler was told %q", when, strange)
}

// wire is a RoundTripper that breaks: requests can be refused, and streams be cut after so many
// bytes or stand still.
type wire struct {
	// Set by newWire, never changed.
	under http.RoundTripper

	mu       sync.Mutex // guards the fields below
	cond     sync.Cond  // on mu: paused has changed, or a stream was closed
	refusing bool
	paused   bool  // nothing is read from any stream
	left     int   // bytes until the stream that is read is cut; -1: it is not
	end      error // how it is cut
	passed   int   // bytes of streams, ever
	cuts     int   // streams cut
	initial  int   // requests for a state: lists, and watches that begin with one
}

func newWire(under http.RoundTripper) *wire {
	w := &wire{under: under, left: -1}
	w.cond.L = &w.mu
	return w
}

func (w *wire) change(change func(*wire)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
	w.cond.Broadcast()
}

func (w *wire) counts() (passed, cuts, initial int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed, w.cuts, w.initial
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	watching := query.Get("watch") == "true"
	if err := w.admit(!watching || query.Get("sendInitialEvents") == "true"); err != nil {
		return nil, err
	}
	response, err := w.under.RoundTrip(request)
	if err == nil && watching {
		s := &streamOnWire{wire: w, under: response.Body, ctx: request.Context()}
		s.stopWaking = context.AfterFunc(s.ctx, func() { w.change(func(*wire) {}) })
		response.Body = s
	}
	return response, err
}

func (w *wire) admit(initial bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusing {
		return syscall.ECONNREFUSED
	}
	if initial {
		w.initial++
	}
	return nil
}

// streamOnWire is the body of a watch.
type streamOnWire struct {
	wire       *wire
	under      io.ReadCloser
	ctx        context.Context
	stopWaking func() bool
	cut        error // not nil: it is
}

func (s *streamOnWire) Close() error {
	s.stopWaking()
	return s.under.Close()
}

func (s *streamOnWire) Read(p []byte) (int, error) {
	if s.cut != nil {
		return 0, s.cut
	}
	n, err := s.under.Read(p)
	w := s.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.paused && s.ctx.Err() == nil {
		w.cond.Wait() // what has been read is what a socket's buffer holds
	}
	if w.left >= 0 && n >= w.left {
		n, err, s.cut = w.left, w.end, w.end
		w.left = -1
		w.cuts++
	} else if w.left >= 0 {
		w.left -= n
	}
	w.passed += n
	return n, err
}

var bothFIFOs = []string{informer.FIFOReal, informer.FIFODelta}

// TestAStreamCutAtAnyByteLosesNothing cuts the stream inside the frame of one event, at every
// byte of it, in the ways in which a connection can end. Each time the event reaches the
// handler once, and no new list is needed.
func TestAStreamCutAtAnyByteLosesNothing(t *testing.T) {
	ends := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET}
	inSite(t, informer.FIFOReal, true, 0, func(t *testing.T, s *site) {
		s.set(t, "a", true)
		time.Sleep(2 * time.Second)
		before, _, _ := s.wire.counts()
		s.set(t, "a", true)
		time.Sleep(2 * time.Second)
		after, _, _ := s.wire.counts()
		frame := after - before
		require.True(t, frame >= 100, "the frame of an event has %d bytes", frame)
		_, _, initial := s.wire.counts()
		for n := range frame + 1 {
			time.Sleep(2 * time.Second) // a watch that ends within a second is another story
			_, changes, _ := s.handler.Read()
			s.wire.change(func(w *wire) { w.left, w.end = n, ends[n%len(ends)] })
			s.set(t, "a", true)
			time.Sleep(10 * time.Second)
			_, got, _ := s.handler.Read()
			require.True(t, got == changes+1,
				"cut after %d of %d bytes by %v: the handler was told %d changes, want 1", n, frame, ends[n%len(ends)],
				got-changes)
			s.check(t, fmt.Sprintf("cut after %d bytes", n))
		}
		_, cuts, initialNow := s.wire.counts()
		assert.True(t, cuts >= frame, "got %d cuts, want one at each of %d bytes", cuts, frame)
		assert.Equal(t, initial, initialNow, "the state was asked for %d times more", initialNow-initial)
	})
}

// TestAReaderThatStopsForAMinuteHoldsUpNobodyAndCatchesUp stops reading the stream while a lot
// happens. The server gives that watcher up, every other client goes on, and afterwards the
// informer is where the server is: through the history, if the server still has it, or through
// a new list.
func TestAReaderThatStopsForAMinuteHoldsUpNobodyAndCatchesUp(t *testing.T) {
	for _, capacity := range []int{0, 10} {
		for _, fifo := range bothFIFOs {
			t.Run(fmt.Sprintf("%s,ring=%d", fifo, capacity), func(t *testing.T) {
				inSite(t, fifo, true, capacity, func(t *testing.T, s *site) {
					for _, name := range []string{"a", "b", "c"} {
						s.set(t, name, true)
					}
					time.Sleep(time.Second)
					s.check(t, "before")
					_, _, initial := s.wire.counts()
					s.wire.change(func(w *wire) { w.paused = true })
					began := time.Now()
					for n := range 600 {
						s.set(t, fmt.Sprint("p", n%40), n%3 != 0)
						time.Sleep(100 * time.Millisecond)
					}
					s.remove(t, "a")
					took := time.Since(began)
					assert.True(t, took <= 61*time.Second, "600 writes, one each 100 ms, took %v: a writer was held up",
						took)
					s.wire.change(func(w *wire) { w.paused = false })
					time.Sleep(5 * time.Minute)
					s.check(t, "after")
					_, _, initialNow := s.wire.counts()
					assert.Equal(t, capacity == 10, initialNow > initial,
						"ring of %d: the state was asked for %d times more", capacity,
						initialNow-initial)
				})
			})
		}
	}
}

// TestWhateverBreaksTheInformerEndsUpWhereTheServerIs lets chance break things: streams,
// connections, readers, servers. Whenever it has been quiet for a while, the store is the
// server's state, and the handler was told nothing that cannot be.
func TestWhateverBreaksTheInformerEndsUpWhereTheServerIs(t *testing.T) {
	for seed := range uint64(12) {
		for _, fifo := range bothFIFOs {
			random := rand.New(rand.NewPCG(seed, 15))
			t.Run(fmt.Sprintf("%d,%s", seed, fifo), func(t *testing.T) {
				inSite(t, fifo, random.IntN(2) == 0, []int{0, 10}[random.IntN(2)],
					func(t *testing.T, s *site) {
						for round := range 8 {
							for range 12 {
								s.misfortune(t, random)
							}
							s.wire.change(func(w *wire) {
								w.refusing, w.paused, w.left = false, false, -1
							})
							time.Sleep(15 * time.Minute)
							s.check(t, fmt.Sprintf("seed %d, round %d", seed, round))
						}
					})
			})
		}
	}
}

// misfortune does one random thing.
func (s *site) misfortune(t *testing.T, random *rand.Rand) {
	t.Helper()
	name := string("abcdef"[random.IntN(6)])
	switch action := random.IntN(20); {
	case action < 8:
		s.set(t, name, random.IntN(4) != 0)
	case action < 12:
		s.remove(t, name)
	case action < 14:
		end := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, errors.New("tls: bad record")}[random.IntN(4)]
		left := random.IntN(1200)
		s.wire.change(func(w *wire) { w.left, w.end = left, end })
	case action < 15:
		s.wire.change(func(w *wire) { w.refusing = !w.refusing })
	case action < 16:
		s.wire.change(func(w *wire) { w.paused = !w.paused })
	case action < 17:
		s.stop()
		time.Sleep(time.Duration(random.IntN(5)) * time.Second)
		s.startServer(t)
	default:
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
	}
}

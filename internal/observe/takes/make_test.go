package takes

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	controllers "listwatch/chapters/14-controllers"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

var (
	update  = flag.Bool("update", false, "make the recordings again")
	asBuilt = flag.String("as-built", "", "NAME=FILE: only make the take NAME, from the code of this program")
)

// set is a whole pipeline in a bubble, whose log becomes a take.
type set struct {
	log    *probe.Log
	client *listwatch.RESTClient // a user's kubectl
	http   *http.Client          // a user's curl
	from   uint64                // the take has the records after this one
	pods   *informer.SharedIndexInformer
	cable  *cable // the connections of the client half: the informer's and the controllers'
}

// cable makes and keeps a client's connections, so that a script can cut them.
type cable struct {
	*pipenet.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.Dial(ctx, network, address) // without mu: in a bubble, a goroutine must not wait for a mutex
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

// cut breaks every connection.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}

// script is the run that a take records. If play calls roll, the take has no earlier records.
type script struct {
	capacity    int // the ring's capacity; 0: dynamic
	controllers []string
	whole       bool // whether the take begins with the first record
	play        func(t *testing.T, s *set)
}

// crew lists all controllers except those of ReplicaSets and Deployments and the garbage collector.
var crew = []string{"kube-scheduler", "kubelet", "namespace-controller"}

var scripts = map[string]script{
	"start": {controllers: crew, whole: true, play: func(t *testing.T, s *set) { time.Sleep(3 * time.Second) }},
	"life":  {controllers: crew, play: playLife},
	"busy":  {controllers: crew, play: playBusy},
	"ring":  {capacity: 10, play: playForgotten("curl")},
	"slow":  {capacity: 10, play: playSlow},

	"lab-hole-in-history":   {capacity: 10, play: playForgotten("laptop")},
	"lab-build-the-table":   {play: playSelection},
	"lab-one-slow-all-slow": {capacity: 10, play: playLaptop},
	"lab-build-replace":     {play: playMissedDeletion},
	"lab-build-pop":         {play: playSlowHandler},
	"lab-lost-wish":         {play: playWishes},
}

// overrun creates a pod, begins the take, and makes more changes than a ring of ten holds.
func (s *set) overrun(t *testing.T) {
	t.Helper()
	s.create(t, "a")
	s.roll()
	for i := range 12 {
		s.label(t, "a", string(rune('k'+i)))
		time.Sleep(time.Second)
	}
}

// playForgotten returns a play in which a client requests a version that has left the ring.
func playForgotten(agent string) func(t *testing.T, s *set) {
	return func(t *testing.T, s *set) {
		s.overrun(t)
		s.watch(t, agent, "&resourceVersion=2", io.Discard)
		time.Sleep(time.Second)
	}
}

// playSelection moves a pod into a selection, and another one out of it.
func playSelection(t *testing.T, s *set) {
	s.create(t, "a")
	s.create(t, "b")
	s.label(t, "b", "red")
	s.roll()
	s.watch(t, "red", "&labelSelector=colour%3Dred", io.Discard)
	time.Sleep(time.Second)
	s.label(t, "a", "red")
	time.Sleep(time.Second)
	s.label(t, "b", "blue")
	time.Sleep(time.Second)
}

// playLaptop changes a pod that two clients watch. One of them is busy after each kilobyte that it reads.
func playLaptop(t *testing.T, s *set) {
	s.create(t, "a")
	s.roll()
	stop := s.watch(t, "laptop", "", busy(20*time.Millisecond))
	s.watch(t, "desk", "", io.Discard)
	time.Sleep(time.Second)
	for i := range 50 {
		s.label(t, "a", string(rune('a'+i%26)))
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(time.Second)
	stop()
}

// playMissedDeletion deletes a pod while the informer waits to reconnect.
func playMissedDeletion(t *testing.T, s *set) {
	s.create(t, "a")
	s.create(t, "b")
	time.Sleep(time.Second)
	s.roll()
	s.cable.cut()
	synctest.Wait() // the informer has noticed the broken connection
	s.remove(t, "b")
	time.Sleep(5 * time.Second)
}

// playSlowHandler changes a pod five times, for a handler that takes a second and a handler that takes no time.
func playSlowHandler(t *testing.T, s *set) {
	for name, takes := range map[string]time.Duration{"slow": time.Second, "quick": 0} {
		handler := processor.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { time.Sleep(takes) }}
		require.Value(s.pods.AddEventHandlerWithOptions(handler, informer.HandlerOptions{Name: name}))(t)
	}
	s.create(t, "a")
	time.Sleep(time.Second)
	s.roll()
	for i := range 5 {
		s.label(t, "a", string(rune('a'+i)))
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(6 * time.Second)
}

// playWishes changes a pod twice, the second time while a worker still works on the first change.
func playWishes(t *testing.T, s *set) {
	p := probe.New(s.log).Resource("pods").Subject("job")
	queue := controllers.NewQueue(p)
	handler := processor.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { queue.Add("default/a") }}
	require.Value(s.pods.AddEventHandlerWithOptions(handler, informer.HandlerOptions{Name: "job-handler"}))(t)
	go func() {
		for key, shutdown := queue.Get(); !shutdown; key, shutdown = queue.Get() {
			p.Text(probe.Reconciled, "has read "+key+", and writes for a second", key, 0, 1)
			time.Sleep(time.Second)
			queue.Done(key)
		}
	}()
	s.create(t, "a")
	time.Sleep(time.Second)
	s.roll()
	s.label(t, "a", "red")
	time.Sleep(500 * time.Millisecond)
	s.label(t, "a", "blue")
	time.Sleep(3 * time.Second)
	queue.ShutDown()
}

// busy is a writer that sleeps for this time in each Write, like a client that is busy between two reads.
type busy time.Duration

func (b busy) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(b))
	return len(p), nil
}

// watch opens a watch of all pods and copies its bytes to the writer "to", a kilobyte at a time. The watch ends with
// the test or with a call of stop, which waits until all bytes are copied.
func (s *set) watch(t *testing.T, agent, more string, to io.Writer) (stop func()) {
	t.Helper()
	response := require.Value(s.get(t, agent, "/api/v1/pods?watch=true"+more, t.Context()))(t)
	copied := make(chan struct{}) // closed when all is copied
	go func() {
		defer close(copied)
		type justAWriter struct{ io.Writer }
		_, _ = io.CopyBuffer(justAWriter{to}, response.Body, make([]byte, 1024))
	}()
	return func() {
		response.Body.Close()
		<-copied
	}
}

func playLife(t *testing.T, s *set) {
	s.roll()
	s.create(t, "a")
	time.Sleep(10 * time.Second)
	s.label(t, "a", "blue")
	time.Sleep(5 * time.Second)
	s.remove(t, "a")
	time.Sleep(40 * time.Second) // longer than the kubelet's grace period
}

func playBusy(t *testing.T, s *set) {
	for _, name := range []string{"a", "b", "c"} {
		s.create(t, name)
		time.Sleep(4 * time.Second)
	}
	s.roll()
	defer s.unread(t)()
	for i, name := range []string{"d", "e"} {
		s.create(t, name)
		time.Sleep(3 * time.Second)
		s.label(t, "a", name)
		s.label(t, "b", name)
		time.Sleep(time.Second)
		if i == 1 {
			s.remove(t, "c")
			time.Sleep(time.Second)
		}
	}
	s.create(t, "f")
	time.Sleep(3 * time.Second)
}

// unread opens a watch of all pods, and never reads its stream. stop closes it.
func (s *set) unread(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	response := require.Value(s.get(t, "curl", "/api/v1/pods?watch=true", ctx))(t)
	return func() { response.Body.Close(); cancel() }
}

func playSlow(t *testing.T, s *set) {
	s.create(t, "a")
	s.roll()
	defer s.unread(t)()
	time.Sleep(time.Second)
	for i := range 40 {
		s.label(t, "a", string(rune('a'+i%26)))
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second)
}

// roll waits until every goroutine in the bubble is blocked, and begins the take with the next record.
func (s *set) roll() {
	synctest.Wait()
	s.from = s.log.Last()
}

func (s *set) get(t *testing.T, agent, path string, ctx context.Context) (*http.Response, error) {
	t.Helper()
	request := require.Value(http.NewRequestWithContext(ctx, http.MethodGet, "http://pipe"+path, nil))(t)
	request.Header.Set("User-Agent", agent)
	return s.http.Do(request)
}

func (s *set) create(t *testing.T, name string) {
	t.Helper()
	pod := apitest.Pod(name, "")
	require.NoError(t, s.client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
}

func (s *set) label(t *testing.T, name, colour string) {
	t.Helper()
	body := []byte(`{"metadata":{"labels":{"colour":"` + colour + `"}}}`)
	require.NoError(t, s.client.Patch(types.MergePatchType).Namespace("default").Resource("pods").Name(name).Body(body).
		Do(t.Context()).Error())
}

func (s *set) remove(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, s.client.Delete().Namespace("default").Resource("pods").Name(name).Do(t.Context()).Error())
}

// shoot runs a script in a bubble and returns the recording.
func shoot(t *testing.T, sc script) (file []byte) {
	bubble.Test(t, func(t *testing.T) {
		clk := clock.RealClock{} // the bubble's clock
		listener := pipenet.Listen()
		base := &url.URL{Scheme: "http", Host: "pipe"}
		s := &set{log: probe.NewLog(clk, 1<<16), http: listener.Client()}
		s.client = listwatch.NewRESTClient(listwatch.Config{Base: base, HTTP: s.http, Clock: clk, QPS: -1,
			UserAgent: "kubectl"})
		server := require.Value(pipeline.NewServer(pipeline.ServerConfig{Client: mvcc.New(clk),
			Handler: apiserver.Handler(nil), Clock: clk,
			Probe: probe.New(s.log), UseWatchList: true, RingCapacity: sc.capacity}))(t)
		s.cable = &cable{Listener: listener}
		away := &http.Client{Transport: &http.Transport{DialContext: s.cable.dial, DisableCompression: true}}
		client := require.Value(pipeline.NewClient(pipeline.ClientConfig{Base: base, HTTP: away, Clock: clk,
			Probe: probe.New(s.log), UseWatchList: true, Controllers: sc.controllers}))(t)
		s.pods = client.Pods().Informer()
		whole := &pipeline.Pipeline{Server: server, Client: client}
		stop := bubble.Go(t, "test.pipeline", func(ctx context.Context) {
			whole.Run(ctx, func(ctx context.Context) {
				front := &http.Server{Handler: server.Handler()}
				go func() { _ = front.Serve(listener) }()
				<-ctx.Done()
				front.Close()
			})
		})
		require.NoError(t, whole.WaitReady(t.Context()))
		if !sc.whole {
			time.Sleep(time.Minute) // enough for a kubelet that met an unready server to retry
		}
		synctest.Wait()
		sc.play(t, s)
		synctest.Wait()
		file = develop(t, s.log, s.from, s.log.Last())
		s.http.CloseIdleConnections()
		stop()
		away.CloseIdleConnections()
		listener.Close()
	})
	return file
}

// TestMake makes and checks every take in [All]; with -update it writes the takes' files. With -as-built=NAME=FILE it
// only makes the take NAME and writes it to FILE, unchecked.
func TestMake(t *testing.T) {
	if name, out, ok := strings.Cut(*asBuilt, "="); ok {
		require.NoError(t, os.WriteFile(out, shoot(t, scripts[name]), 0o644))
		return
	}
	for _, take := range All {
		sc := scripts[take.Name]
		t.Run(take.Name, func(t *testing.T) {
			file := shoot(t, sc)
			check(t, take, file)
			if !*update {
				return
			}
			require.NoError(t, os.WriteFile(take.Name+Suffix, file, 0o644))
		})
	}
}

// develop returns the records in (from, to] of a log as a recording. It leaves out the header's revision, which would
// change with each commit.
func develop(t *testing.T, log *probe.Log, from, to uint64) []byte {
	t.Helper()
	all, ok := log.Since(nil, 0, int(to))
	require.True(t, ok && from < to, "nothing to be seen after record %d", from)
	header := recording.NewHeader(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), nil)
	header.Revision = ""
	if from > 0 {
		before := fold.New()
		before.Apply(all[:from])
		header.Keyframe = require.Value(json.Marshal(before))(t)
	}
	var out bytes.Buffer
	require.NoError(t, recording.WriteAll(&out, header, all[from:]))
	return out.Bytes()
}

// Package sandboxtest runs a whole pipeline with a sandbox in a bubble of testing/synctest. Tests play stories on the
// pipeline and make the stories' recordings. A story can stop and start the server, start a second server, slow etcd
// down, and restore etcd to an earlier version.
//
// Only the bubble's goroutine may change a [Fixture].
package sandboxtest

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

// Fixture is a pipeline in a bubble.
type Fixture struct {
	// Set by Run, never changed.
	Pipeline *pipeline.Pipeline // "server start" replaces its Server
	Sandbox  *sandbox.Sandbox
	Log      *probe.Log
	Probe    *probe.Probe
	Clock    clock.WithTicker
	HTTP     *http.Client // sends the client half's requests
	t        *testing.T   // the bubble's t

	etcd       etcd
	stopServer func()
	listener   atomic.Pointer[pipenet.Listener] // the listener to which new connections lead
	hung       atomic.Pointer[atomic.Bool]      // if not nil, new connections hang while it is true

	// For the other server, which "other start" starts.
	first     *pipenet.Listener // the first server's listener, for "other first"
	otherHung *atomic.Bool
	end       func()
}

// etcd is a small in-memory etcd that delays each List by slow, in nanoseconds.
type etcd struct {
	*mvcc.Store
	slow *atomic.Int64
}

func (e etcd) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	if err := routine.Sleep(ctx, clock.RealClock{}, time.Duration(e.slow.Load())); err != nil {
		return kubernetes.ListResponse{}, err
	}
	return e.Store.List(ctx, prefix, opts)
}

// Run runs body in a bubble, a minute after both halves are ready. The log keeps logSize records.
func Run(t *testing.T, logSize int, body func(t *testing.T, w *Fixture)) {
	bubble.Test(t, func(t *testing.T) {
		clk := clock.RealClock{} // reads the bubble's time
		w := &Fixture{t: t, Log: probe.NewLog(clk, logSize), Clock: clk, etcd: etcd{mvcc.New(clk), new(atomic.Int64)}}
		w.Log.LimitLoud(probe.LoudLanes, sandbox.Followed) // like the program: the log omits quiet lanes' records
		w.Probe = probe.New(w.Log)
		w.Pipeline = &pipeline.Pipeline{}
		require.NoError(t, w.startServer())
		defer func() { w.stopServer() }()
		w.end = func() {}
		defer func() { w.end() }()
		base := &url.URL{Scheme: "http", Host: "pipe"}
		// A pipe that the server closes during the next request fails in a way that a socket does not, so each
		// connection serves one request.
		transport := &http.Transport{DialContext: w.dial, DisableKeepAlives: true}
		connections := sandbox.NewConnections(&http.Client{Transport: transport}, nil)
		w.HTTP = connections.Client
		w.Pipeline.Client = require.Value(pipeline.NewClient(pipeline.ClientConfig{
			Base: base, HTTP: connections.Client, Clock: clk, Probe: w.Probe, UseWatchList: true,
			Controllers: pipeline.Controllers,
		}))(t)
		w.Sandbox = require.Value(sandbox.New(sandbox.Config{Pipeline: w.Pipeline, Connections: connections,
			Clock: clk, Probe: w.Probe, Gate: w.Log.Gate()}))(t)
		defer bubble.Go(t, "sandboxtest.client", w.Pipeline.Client.Run)()
		defer bubble.Go(t, "sandboxtest.sandbox", w.Sandbox.Run)()
		defer bubble.Go(t, "sandboxtest.crowd", func(ctx context.Context) {
			routine.Every(ctx, clk, time.Second, func(context.Context) { w.Log.LookAtCrowd() })
		})()
		require.NoError(t, w.Pipeline.Server.WaitReady(t.Context()))
		require.NoError(t, w.Pipeline.Client.WaitReady(t.Context()))
		time.Sleep(time.Minute) // a kubelet that found the server not ready retries within this time
		synctest.Wait()
		body(t, w)
	})
}

func (w *Fixture) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := w.listener.Load().Dial(ctx, network, address)
	if hung := w.hung.Load(); err == nil && hung != nil {
		return hanging{conn, hung}, nil
	}
	return conn, err
}

// hanging is a connection that delivers no data while hung is true.
type hanging struct {
	net.Conn
	hung *atomic.Bool
}

// Read returns data, or the error with which the connection breaks. It drops data that arrive while hung is true.
func (c hanging) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.hung.Load() {
			return n, err // a pipe returns no data with an error
		}
	}
}

// Do implements [scenario.Operator], which defines the words.
func (w *Fixture) Do(ctx context.Context, words ...string) error {
	switch strings.Join(words[:2], " ") {
	case "server stop":
		w.stopServer()
	case "server start":
		return w.startServer()
	case "etcd slow":
		d, err := time.ParseDuration(words[2])
		w.etcd.slow.Store(int64(d))
		return err
	case "etcd restore":
		rv, err := strconv.ParseInt(words[2], 10, 64)
		w.etcd.Store = w.etcd.Until(rv)
		return err
	case "other start":
		return w.startOther(ctx)
	case "other first":
		w.otherHung = w.hung.Swap(nil)
		w.listener.Store(w.first)
	case "other hang":
		w.otherHung.Store(true)
	case "other end":
		w.end()
	}
	return nil
}

// startServer replaces Pipeline.Server by a new server on the same etcd. Later connections lead to the new server.
// startServer does not wait until the server's caches are filled.
func (w *Fixture) startServer() error {
	s, err := w.start(w.Probe)
	if err != nil {
		return err
	}
	w.stopServer = func() {
		// Close the listener first, so that it refuses every client, and each client reconnects after its own backoff.
		_ = s.listener.Close()
		s.EndStreams()
		_ = s.front.Shutdown(context.Background())
		s.end()
	}
	w.Pipeline.Server = s.Server
	w.listener.Store(s.listener)
	return nil
}

// server is a server half with its listener and HTTP server.
type server struct {
	*pipeline.Server
	listener *pipenet.Listener
	front    *http.Server
	end      func() // ends the server half and waits for that; called after front has ended
}

func (w *Fixture) start(p *probe.Probe) (*server, error) {
	half, err := pipeline.NewServer(pipeline.ServerConfig{Client: w.etcd, Handler: apiserver.Handler(nil),
		Clock: w.Clock, Probe: p, UseWatchList: true})
	if err != nil {
		return nil, err
	}
	s := &server{Server: half, listener: pipenet.Listen(), front: &http.Server{Handler: half.Handler()},
		end: bubble.Go(w.t, "sandboxtest.server", half.Run)}
	go func() { _ = s.front.Serve(s.listener) }() // returns on Shutdown or Close
	return s, nil
}

// startOther starts another server on the same etcd and waits until it is ready. The other server reports no records.
// Later connections lead to the other server.
func (w *Fixture) startOther(ctx context.Context) error {
	s, err := w.start(nil)
	if err != nil {
		return err
	}
	w.first = w.listener.Load()
	w.end = func() {
		_ = s.front.Close()
		s.end()
	}
	if err := s.WaitReady(ctx); err != nil {
		w.end()
		return err
	}
	w.hung.Store(new(atomic.Bool))
	w.listener.Store(s.listener)
	return nil
}

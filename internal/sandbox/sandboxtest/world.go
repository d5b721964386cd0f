// Package sandboxtest runs a whole pipeline with a sandbox in a bubble of testing/synctest: what stories are played on in tests and
// when their recordings are made. Its server can be ended and started again, and its etcd be slow or go back to a backup.
//
// The bubble's goroutine alone calls what changes a [World].
package sandboxtest

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/mvcc"
	"listwatch/internal/pipenet"
	"listwatch/internal/probe"
	"listwatch/internal/routine"
	"listwatch/internal/sandbox"
)

// World is a pipeline in a bubble.
type World struct {
	// Set by Run, never changed.
	Pipeline *pipeline.Pipeline // its Server is another one after StartServer
	Sandbox  *sandbox.Sandbox
	Log      *probe.Log
	Probe    *probe.Probe
	Clock    clock.WithTicker
	ctx      context.Context

	etcd       etcd
	stopServer func()
	listener   atomic.Pointer[pipenet.Listener] // of the server that was started last
}

// etcd is the small one, which can be slow.
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

// Run runs body in a bubble with a world that has settled.
func Run(t *testing.T, logSize int, body func(t *testing.T, w *World)) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.RealClock{} // the bubble's
		ctx, cancel := context.WithCancel(t.Context())
		w := &World{Log: probe.NewLog(clk, logSize), Clock: clk, ctx: ctx, etcd: etcd{mvcc.New(clk), new(atomic.Int64)}}
		w.Probe = probe.New(w.Log)
		w.Pipeline = &pipeline.Pipeline{}
		if err := w.StartServer(); err != nil {
			t.Fatal(err)
		}
		defer func() { w.stopServer() }()
		base := &url.URL{Scheme: "http", Host: "pipe"}
		// A pipe that the server closes while the next request is written breaks in a way that no socket does: none is used twice.
		transport := &http.Transport{DialContext: w.dial, DisableKeepAlives: true}
		connections := sandbox.NewConnections(&http.Client{Transport: transport}, nil)
		var err error
		w.Pipeline.Client, err = pipeline.NewClient(pipeline.ClientConfig{
			Base: base, HTTP: connections.Client(), Clock: clk, Probe: w.Probe, UseWatchList: true, Controllers: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Sandbox, err = sandbox.New(sandbox.Config{Pipeline: w.Pipeline, Connections: connections, Clock: clk, Probe: w.Probe, Gate: w.Log.Gate()})
		if err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		clients.Go(func() { w.Pipeline.Client.Run(ctx) })
		clients.Go(func() { w.Sandbox.Run(ctx) })
		defer func() {
			cancel()
			clients.Wait()
		}()
		if err := w.Pipeline.Server.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		if err := w.Pipeline.Client.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // a kubelet that came before the server was ready tries again
		synctest.Wait()
		body(t, w)
	})
}

func (w *World) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return w.listener.Load().Dial(ctx, network, address)
}

// StopServer ends the server: its streams end, and its clients are refused.
func (w *World) StopServer() { w.stopServer() }

// StartServer starts another server on the same etcd. It does not wait until its caches are filled.
func (w *World) StartServer() error {
	server, err := pipeline.NewServer(pipeline.ServerConfig{Client: w.etcd, Clock: w.Clock, Probe: w.Probe, UseWatchList: true})
	if err != nil {
		return err
	}
	listener := pipenet.Listen()
	front := &http.Server{Handler: server.Handler()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.ctx))
	var group sync.WaitGroup
	group.Go(func() { server.Run(ctx) })
	group.Go(func() { _ = front.Serve(listener) })
	w.stopServer = func() {
		// Closed first: a client that came back while the streams end would find a watch that is over at once, and list again.
		_ = listener.Close()
		server.EndStreams()
		_ = front.Shutdown(context.Background())
		cancel()
		group.Wait()
	}
	w.Pipeline.Server = server
	w.listener.Store(listener)
	return nil
}

// SlowEtcd makes each list of etcd take so long.
func (w *World) SlowEtcd(each time.Duration) { w.etcd.slow.Store(int64(each)) }

// RestoreEtcd lets etcd be as it was at a version, for the server that is started next.
func (w *World) RestoreEtcd(rv uint64) { w.etcd.Store = w.etcd.Store.Until(int64(rv)) }

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	etcd3 "listwatch/chapters/02-etcd3"
	cacher "listwatch/chapters/06-cacher"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/etcdnode"
	"listwatch/internal/probe"
	"listwatch/viz"
)

// serve runs the program until ctx is done or something essential breaks, and returns when nothing runs any more.
// The port comes first: that it is taken is the mistake people make most often, and nothing is started for it.
func serve(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	listening, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", o.listen, err)
	}
	defer listening.Close()
	listener := listening.(*net.TCPListener) // what "tcp" stands for
	warnIfOpen(listener, stderr)
	if o.replay != "" {
		return replay(ctx, o, listener, stdout, stderr)
	}
	return live(ctx, o, listener, stdout, stderr)
}

// live runs the real thing, and again whenever somebody wants it with other switches: etcd with its data, and the port, stay.
func live(ctx context.Context, o *options, listener *net.TCPListener, stdout, stderr io.Writer) (err error) {
	etcd, err := openEtcd(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.close()) }()
	ready := func() { announce(o, listener, stdout, stderr) }
	for now := o; now != nil && err == nil; ready = func() {} {
		s := &session{options: now, first: o, etcd: etcd, listener: listener, stderr: stderr, next: make(chan *options, 1)}
		now, err = s.run(ctx, ready)
	}
	return err
}

// etcd is the etcd that is used.
type etcd struct {
	client  etcd3.Client
	close   func() error                    // ends it and everything that was started for it
	restart func(ctx context.Context) error // nil: it is not ours
}

// openEtcd returns the etcd to use.
func openEtcd(ctx context.Context, o *options) (used etcd, err error) {
	if o.etcdEndpoints != "" {
		external, err := etcdnode.Dial(ctx, strings.Split(o.etcdEndpoints, ","))
		if err != nil {
			return etcd{}, err
		}
		return etcd{client: etcd3.NewClient(external), close: external.Close}, nil
	}
	dir, removeDir := o.dataDir, func() error { return nil }
	if dir == "" {
		dir, err = os.MkdirTemp("", "listwatch-")
		if err != nil {
			return etcd{}, fmt.Errorf("make a folder for etcd's data: %w", err)
		}
		removeDir = func() error { return os.RemoveAll(dir) }
	}
	node, err := etcdnode.Start(ctx, etcdnode.Options{Dir: dir, Durable: o.dataDir != ""})
	if err != nil {
		return etcd{}, errors.Join(err, removeDir())
	}
	return etcd{
		client:  etcd3.NewClient(node.Client()),
		close:   func() error { return errors.Join(node.Close(), removeDir()) },
		restart: node.Restart,
	}, nil
}

func newPipeline(o *options, client etcd3.Client, clocks *clocks, p *probe.Probe, base *url.URL) (*pipeline.Pipeline, error) {
	dispatch := cacher.TwoPhase
	if o.dispatch == cacher.Sequential.String() {
		dispatch = cacher.Sequential
	}
	server, err := pipeline.NewServer(pipeline.ServerConfig{
		Client: client, Clock: clocks.world, Patience: clocks.patience, Probe: p, MediaType: o.mediaType, EtcdWatcher: o.etcdWatcher,
		Dispatch: dispatch, RingCapacity: o.ringCapacity, UseWatchList: o.initial == "watchlist",
	})
	if err != nil {
		return nil, err
	}
	clientHalf, err := pipeline.NewClient(pipeline.ClientConfig{
		Base: base, HTTP: newHTTPClient(), Clock: clocks.world, Probe: p, FIFO: o.fifo, UseWatchList: o.initial == "watchlist",
		Controllers: o.controllers, Demo: o.demo, Registry: server.Registry(),
	})
	if err != nil {
		return nil, err
	}
	return &pipeline.Pipeline{Server: server, Client: clientHalf}, nil
}

// newUI fills in what every page of this program has: the book, the switches, and the names it may be called by.
func newUI(o *options, listener net.Listener, config viz.Config) (*viz.UI, error) {
	book, err := viz.NewBook()
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(o.listen)
	config.Book = book
	config.Hosts = []string{host, listener.Addr().String()}
	config.Switches = o.switches()
	return viz.New(config), nil
}

// ended returns why ctx is done: nil if the program was told to end, otherwise what broke.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// announce prints the one line that scripts wait for.
func announce(o *options, listener net.Listener, stdout, stderr io.Writer) {
	url := baseURL(listener).String()
	fmt.Fprintf(stdout, "listening on %s\n", url)
	if o.open {
		openBrowser(url, stderr)
	}
}

// baseURL returns the address under which this machine reaches the listener.
func baseURL(listener net.Listener) *url.URL {
	addr := listener.Addr().(*net.TCPAddr)
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
		if addr.IP.To4() == nil {
			host = "::1"
		}
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, fmt.Sprint(addr.Port))}
}

// warnIfOpen says so if others than this machine can reach the listener: there is no authentication at all.
func warnIfOpen(listener net.Listener, stderr io.Writer) {
	if addr := listener.Addr().(*net.TCPAddr); !addr.IP.IsLoopback() {
		fmt.Fprintf(stderr, "viz: warning: %s can be reached from other machines, and whoever reaches it may do everything\n", addr)
	}
}

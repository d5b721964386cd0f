package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	cacher "listwatch/chapters/06-cacher"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/play/lab"
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
	if o.server != nil {
		return serveGuest(ctx, o, listener, stdout, stderr)
	}
	return live(ctx, o, listener, stdout, stderr)
}

// live runs the real thing, and again after each change of a switch: etcd with its data, and the port, stay.
func live(ctx context.Context, o *options, listener *net.TCPListener, stdout, stderr io.Writer) (err error) {
	etcd, err := openEtcd(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.close()) }()
	ready := func() { announce(o, listener, stdout, stderr) }
	flights := &recording.Budget{}
	for now := o; now != nil && err == nil; ready = func() {} {
		s := &session{options: now, first: o, etcd: etcd, listener: listener, flights: flights, stderr: stderr,
			next: make(chan *options, 1)}
		now, err = s.run(ctx, ready)
	}
	return err
}

func newPipeline(o *options, used etcd, clocks *clocks, p *probe.Probe, base *url.URL,
	over *http.Client) (*pipeline.Pipeline, error) {
	dispatch := cacher.TwoPhase
	if o.dispatch == cacher.Sequential.String() {
		dispatch = cacher.Sequential
	}
	server, err := pipeline.NewServer(pipeline.ServerConfig{
		Client: used.client, EtcdReady: used.ready, Clock: clocks.world, Patience: clocks.patience, Probe: p,
		MediaType: o.mediaType, EtcdWatcher: o.etcdWatcher,
		Dispatch: dispatch, RingCapacity: o.ringCapacity, UseWatchList: o.initial == "watchlist",
	})
	if err != nil {
		return nil, err
	}
	clientHalf, err := pipeline.NewClient(pipeline.ClientConfig{
		Base: base, HTTP: over, Clock: clocks.world, Probe: p, FIFO: o.fifo, UseWatchList: o.initial == "watchlist",
		Controllers: o.controllers, Registry: server.Registry(),
	})
	if err != nil {
		return nil, err
	}
	return &pipeline.Pipeline{Server: server, Client: clientHalf}, nil
}

// newUI fills in what every page of this program has: the book, the switches, the lab in whose working copy it runs,
// and the names it may be called by.
func newUI(o *options, listener net.Listener, config viz.Config) *viz.UI {
	host, _, _ := net.SplitHostPort(o.listen)
	config.Book = viz.NewBook()
	config.Hosts = []string{host, listener.Addr().String()}
	config.Switches = o.switches()
	if chosen, _, ok := lab.In("."); ok {
		started := time.Now()
		config.Lab = &chosen
		config.LabState = func() (string, bool, error) {
			checked, err := lab.LastCheck(".")
			return checked.Sentence(started), checked.Broken(), err
		}
	}
	return viz.New(config)
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
	url := baseURL(o.listen, listener.Addr().(*net.TCPAddr)).String()
	fmt.Fprintf(stdout, "listening on %s\n", url)
	if o.open {
		openBrowser(url, stderr)
	}
}

// baseURL returns the address under which this machine reaches a listener at addr that was asked to listen on asked.
// One for every address listens to both families and says [::], whichever was asked for: only -listen tells which is
// meant.
func baseURL(asked string, addr *net.TCPAddr) *url.URL {
	ip := addr.IP
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
		host, _, _ := net.SplitHostPort(asked) // checked when the flags were parsed
		if v6 := net.ParseIP(host); v6 != nil && v6.To4() == nil {
			ip = net.IPv6loopback
		}
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(ip.String(), fmt.Sprint(addr.Port))}
}

// warnIfOpen says so if others than this machine can reach the listener: there is no authentication at all.
func warnIfOpen(listener net.Listener, stderr io.Writer) {
	if addr := listener.Addr().(*net.TCPAddr); !addr.IP.IsLoopback() {
		fmt.Fprintf(stderr, "viz: warning: %s can be reached from other machines, and anyone who reaches it may do "+
			"everything\n", addr)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"syscall"

	"listwatch/cmd/internal/machine"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/lab"
	"listwatch/internal/play/scenario"
	"listwatch/viz/book"
	"listwatch/viz/frame"
)

// serve runs the program until ctx is done or something essential breaks, and returns when all of it has ended. It
// opens the port first, because a port in use is the most frequent mistake, and must not cost a start of etcd.
func serve(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	listening, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; -listen 127.0.0.1:0 takes a free port", o.listen, reason(err))
	}
	defer listening.Close()
	listener := listening.(*net.TCPListener) // Listen returns this type for "tcp"
	warnIfOpen(listener, stderr)
	if o.kubeconfig != "" {
		url := baseURL(o.listen, listener.Addr().(*net.TCPAddr)).String()
		if err := writeKubeconfig(o.kubeconfig, url); err != nil {
			return fmt.Errorf("-kubeconfig: %w", err)
		}
	}
	if o.replay != "" {
		return replay(ctx, o, listener, stdout, stderr)
	}
	if o.server != nil {
		return serveGuest(ctx, o, listener, stdout, stderr)
	}
	return live(ctx, o, listener, stdout, stderr)
}

// live runs the machine with a real etcd behind the port. Etcd with its data, and the port, outlive the machine's runs.
func live(ctx context.Context, o *options, listener *net.TCPListener, stdout, stderr io.Writer) (err error) {
	etcd, err := openEtcd(ctx, o)
	if err != nil {
		return err
	}
	closeEtcd := o.end.last.add(etcd.close)
	defer func() { err = errors.Join(err, closeEtcd()) }()
	return machine.Serve(ctx, o.host(etcd, listener, stderr), o.Options,
		func() { announce(o, listener, stdout, stderr) })
}

// host returns the environment for a machine that uses etcd, serves on listener, and prints its messages to stderr.
func (o *options) host(etcd etcd, listener *net.TCPListener, stderr io.Writer) *machine.Host {
	say := func(line string) { fmt.Fprintf(stderr, "viz: %s\n", line) }
	frontLog := newFrontLog(stderr) // one log for the fronts of all runs
	return &machine.Host{
		Etcd: etcd.Etcd,
		Base: baseURL(o.listen, listener.Addr().(*net.TCPAddr)),
		Lines: func() (client, watchers *http.Client) {
			return newHTTPClient(dialWith(feedBuffer)), newHTTPClient(dialNarrow)
		},
		Serve: func(ctx context.Context, handler http.Handler, fail context.CancelCauseFunc) {
			ctx, stop := context.WithCancel(ctx)
			forget := o.end.streams.add(func() error { stop(); return nil })
			defer func() { _ = forget() }()
			(&front{listener: lend(listener), handler: handler, fail: fail, log: frontLog}).run(ctx)
		},
		Page: bring, Hosts: o.hosts(listener),
		Record: func(log *probe.Log) (func() error, error) {
			return startRecording(o, o.Shown(), log, stderr)
		},
		Recorded: o.record,
		Beside: func(ctx context.Context, group *routine.Group, run *machine.Run) {
			lookAfterEtcd(ctx, group, etcd, run, say)
			if o.flight != flightOff {
				group.Go(ctx, "viz.flight", (&recording.Flight{
					Log: run.Log, Dir: o.flight, Switches: run.Now(),
					Keyframe: run.Pictures.Keyframe, Breaches: run.Promises.Breaches, Say: say,
				}).Run)
			}
		},
		Say: say,
	}
}

// bring adds what every page of this program has: the book and, in the working copy of a lab, that lab.
func bring(page *frame.Page) {
	page.Book.Pages = book.New(scenario.All)
	if chosen, _, ok := lab.In("."); ok {
		page.Promises.Lab = &chosen
	}
}

// hosts returns the host names under which a browser may open the page.
func (o *options) hosts(listener net.Listener) []string {
	host, _, _ := net.SplitHostPort(o.listen) // cannot fail: the flags were checked
	return []string{host, listener.Addr().String()}
}

// reason returns the system's error in err, without the address, or err if there is none.
func reason(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}

// announce prints the one line that scripts wait for, and with -open opens the browser.
func announce(o *options, listener net.Listener, stdout, stderr io.Writer) {
	url := baseURL(o.listen, listener.Addr().(*net.TCPAddr)).String()
	fmt.Fprintf(stdout, "listening on %s\n", url)
	if o.open {
		openBrowser(url, stderr)
	}
}

// baseURL returns the URL at which this machine reaches a listener at addr. asked is -listen's value. A listener on
// every address reports [::] for IPv4, too, so only asked shows which family is meant.
func baseURL(asked string, addr *net.TCPAddr) *url.URL {
	ip := addr.IP
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
		host, _, _ := net.SplitHostPort(asked) // cannot fail: the flags were checked
		if v6 := net.ParseIP(host); v6 != nil && v6.To4() == nil {
			ip = net.IPv6loopback
		}
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(ip.String(), fmt.Sprint(addr.Port))}
}

// warnIfOpen prints a warning if other machines can reach the listener, because there is no authentication.
func warnIfOpen(listener net.Listener, stderr io.Writer) {
	if addr := listener.Addr().(*net.TCPAddr); !addr.IP.IsLoopback() {
		fmt.Fprintf(stderr, "viz: warning: %s can be reached from other machines, and "+
			"anyone who reaches it may do "+
			"everything\n", addr)
	}
}

// openBrowser makes the desktop open url. A failure only prints a line, because url is printed anyway.
func openBrowser(url string, stderr io.Writer) {
	var command *exec.Cmd
	switch runtime.GOOS {
	case "windows":
		command = exec.Command("rundll32", "url.dll,FileProtocolHandler", url)
	case "darwin":
		command = exec.Command("open", url)
	default:
		command = exec.Command("xdg-open", url)
	}
	if err := command.Start(); err != nil {
		fmt.Fprintf(stderr, "cannot open a browser: %v\n", err)
		return
	}
	go func() { _ = command.Wait() }() // prevents a zombie; the opener returns at once
}

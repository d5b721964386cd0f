package program

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy stands between clients and the program, and can cut what passes through it.
type Proxy struct {
	URL      string
	upstream string // HOST:PORT
	listener net.Listener
	group    sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	open  map[net.Conn]bool
	pause chan struct{} // closed by Release: connections that are made before wait; nil: none is to wait
	ended bool
}

// StartProxy starts a proxy of v on a free port of loopback, for as long as the test runs.
func StartProxy(tb testing.TB, v *Viz) *Proxy {
	tb.Helper()
	target, err := url.Parse(v.URL)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{URL: "http://" + listener.Addr().String(), upstream: target.Host, listener: listener, open: map[net.Conn]bool{}}
	p.group.Go(p.accept)
	tb.Cleanup(p.stop)
	return p
}

func (p *Proxy) stop() {
	p.Release()
	p.listener.Close()
	p.mu.Lock()
	p.ended = true
	p.closeAllLocked()
	p.mu.Unlock()
	p.group.Wait()
}

// Cut closes every connection. Those made from now on wait for Release.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause = make(chan struct{})
	p.closeAllLocked()
}

func (p *Proxy) closeAllLocked() {
	for conn := range p.open {
		conn.Close()
	}
}

// Release lets the connections that wait go on.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pause != nil {
		close(p.pause)
		p.pause = nil
	}
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.serve(conn) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	pause, ok := p.register(client)
	defer p.forget(client)
	if !ok {
		return
	}
	if pause != nil {
		<-pause
	}
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	if _, ok := p.register(server); !ok {
		server.Close()
		return
	}
	defer p.forget(server)
	p.group.Go(func() {
		io.Copy(server, client)
		server.Close()
	})
	io.Copy(client, server)
}

func (p *Proxy) register(conn net.Conn) (pause chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		conn.Close()
		return nil, false
	}
	p.open[conn] = true
	return p.pause, true
}

func (p *Proxy) forget(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

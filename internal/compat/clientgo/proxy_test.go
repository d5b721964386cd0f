package clientgo

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"listwatch/internal/compat/program"
)

// proxy stands between clients and the program, and can cut what passes through it.
type proxy struct {
	URL      string
	upstream string // HOST:PORT
	listener net.Listener
	group    sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	open  map[net.Conn]bool
	pause chan struct{} // closed by release: connections that are made before wait; nil: none is to wait
	ended bool
}

func startProxy(t *testing.T, v *program.Viz) *proxy {
	t.Helper()
	target := must(url.Parse(v.URL))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{URL: "http://" + listener.Addr().String(), upstream: target.Host, listener: listener, open: map[net.Conn]bool{}}
	p.group.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

func (p *proxy) stop() {
	p.release()
	p.listener.Close()
	p.mu.Lock()
	p.ended = true
	p.closeAllLocked()
	p.mu.Unlock()
	p.group.Wait()
}

// cut closes every connection. Those made from now on wait for release.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause = make(chan struct{})
	p.closeAllLocked()
}

func (p *proxy) closeAllLocked() {
	for conn := range p.open {
		conn.Close()
	}
}

// release lets the connections that wait go on.
func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pause != nil {
		close(p.pause)
		p.pause = nil
	}
}

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.serve(conn) })
	}
}

func (p *proxy) serve(client net.Conn) {
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

func (p *proxy) register(conn net.Conn) (pause chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		conn.Close()
		return nil, false
	}
	p.open[conn] = true
	return p.pause, true
}

func (p *proxy) forget(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

package pipenet

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"

	"listwatch/internal/observe/routine"
)

// socketBuffers is how many bytes a watcher's line of cmd/viz holds in the kernel: 8 KB at either end, the least that
// Linux gives. A server in a tab is to notice a watcher that does not read after as many events.
const socketBuffers = 16 << 10

// Lines returns a client like [Network.Client], and one whose connections hold 16 KB of what the server has sent and
// the client has not read, as sockets do. The caller calls CloseIdleConnections of both when done.
func (n *Network) Lines() (plain, buffered *http.Client) {
	plain, buffered = n.Client(), n.Client()
	buffered.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, at string) (net.Conn, error) {
		conn, err := n.dial(ctx, network, at)
		if err != nil {
			return nil, err
		}
		return newBufferedConn(ctx, conn), nil
	}
	return plain, buffered
}

// bufferedConn is the client's end of a connection with a buffer. It knows no deadlines for reading: net/http's client
// sets none.
type bufferedConn struct {
	net.Conn

	filling routine.Group // fill; Close waits for it

	mu      sync.Mutex // guards the fields below; innermost
	changed sync.Cond  // of any of them
	unread  bytes.Buffer
	err     error // why no more comes
	closed  bool
}

// newBufferedConn starts the goroutine that fills the buffer. It outlives ctx, which is that of the dial: Close ends
// it.
func newBufferedConn(ctx context.Context, conn net.Conn) *bufferedConn {
	b := &bufferedConn{Conn: conn}
	b.changed.L = &b.mu
	b.filling.Go(context.WithoutCancel(ctx), "pipenet.fill", b.fill)
	return b
}

// fill moves what arrives into the buffer while that has room, until the connection ends.
func (b *bufferedConn) fill(context.Context) {
	var piece [4 << 10]byte // what net/http writes at once comes at once
	for more := true; more; {
		n, err := b.Conn.Read(piece[:])
		more = b.put(piece[:n], err)
	}
}

// put appends what was read, waits until there is room for more, and reports whether more is to be read.
func (b *bufferedConn) put(piece []byte, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unread.Write(piece)
	b.err = err
	b.changed.Broadcast()
	for b.unread.Len() >= socketBuffers && !b.closed && err == nil {
		b.changed.Wait()
	}
	return err == nil && !b.closed
}

// Read implements [net.Conn].
func (b *bufferedConn) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.unread.Len() == 0 && b.err == nil && !b.closed {
		b.changed.Wait()
	}
	switch {
	case b.closed:
		return 0, net.ErrClosed
	case b.unread.Len() == 0:
		return 0, b.err
	}
	b.changed.Broadcast()
	return b.unread.Read(p)
}

// Close implements [net.Conn], and returns when nothing fills the buffer any more.
func (b *bufferedConn) Close() error {
	err := b.Conn.Close()
	b.end()
	b.filling.Wait()
	return err
}

func (b *bufferedConn) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}

package etcdnode

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

var errClosed = errors.New("etcd has been closed")

// Options says where and how an [Etcd] keeps its data.
type Options struct {
	Dir     string // holds etcd's "member" folder; created if missing
	Durable bool   // wait for the disk on each write; otherwise data survives the process, but not a power failure
}

// Etcd is a running etcd of one member.
type Etcd struct {
	// Set by Start, never changed.
	options Options
	trouble *trouble
	client  *clientv3.Client

	lifeMu sync.Mutex             // held while the member is started or stopped, and by Close
	closed bool                   // guarded by lifeMu
	member atomic.Pointer[member] // nil while it is down; replaced with lifeMu held
}

// Start starts etcd on the data in options.Dir and returns when it can be written to. Another process, or another Etcd
// of this one, that works on that data is an error. The caller closes it.
func Start(ctx context.Context, options Options) (*Etcd, error) {
	if options.Dir == "" {
		return nil, errors.New("start etcd: no data folder given")
	}
	e := &Etcd{options: options, trouble: newTrouble(options.Dir)}
	var err error
	// It never asks: after a stop in a debugger an answer that is late would cost the connection.
	e.client, err = newClient([]string{"passthrough:///etcd"}, TLSFiles{}, 0, grpc.WithContextDialer(e.dial))
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Client returns the etcd's one client. It survives restarts, and is closed with the etcd.
func (e *Etcd) Client() *clientv3.Client { return e.client }

// Broken is done when etcd cannot go on; its cause says why, and what to do about it. Then Close is all that is left.
func (e *Etcd) Broken() context.Context { return e.trouble.broken }

// dial connects the client to the member of the moment.
func (e *Etcd) dial(ctx context.Context, _ string) (net.Conn, error) {
	m := e.member.Load()
	if m == nil {
		return nil, errors.New("etcd is down")
	}
	return m.pipe.DialContext(ctx)
}

// Restart stops the member and starts another one on its data. The client reconnects by itself; its watches lose
// nothing. Restart waits for one that is under way. Once the stop has begun, ctx no longer counts: a caller that goes
// away must not leave etcd down. The error is that of ctx, or that the etcd was closed, if nothing was done; a member
// that does not come back breaks the etcd.
func (e *Etcd) Restart(ctx context.Context) error {
	e.lifeMu.Lock()
	defer e.lifeMu.Unlock()
	if e.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.stop()
	err := e.start(context.WithoutCancel(ctx))
	if err != nil {
		e.trouble.report("it did not come back after a restart", err)
	}
	return err
}

// Close stops the client and the member and returns when nothing of them runs any more. Calling it again does nothing.
// What is left of a broken etcd cannot be ended, only left behind: the process is expected to end.
func (e *Etcd) Close() error {
	e.lifeMu.Lock() // after a restart that is under way
	defer e.lifeMu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	err := e.client.Close() // first: a client without a server would spend its last moments reconnecting
	e.stop()
	return err
}

// stop takes the member away first: stopping it ends connections, and their client comes back at once.
func (e *Etcd) stop() {
	if m := e.member.Swap(nil); m != nil {
		m.stop()
	}
}

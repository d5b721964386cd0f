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

// Options are where and how an [Etcd] keeps its data.
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

// Start starts etcd on the data in options.Dir and returns when it takes writes. The error may be that another process,
// or another Etcd, uses the data. The caller closes it.
func Start(ctx context.Context, options Options) (*Etcd, error) {
	if options.Dir == "" {
		return nil, errors.New("start etcd: no data folder given")
	}
	e := &Etcd{options: options, trouble: newTrouble(options.Dir)}
	var err error
	// Without keep-alives: after a stop in a debugger, a late answer would cost the connection.
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

// Broken is done when etcd cannot continue; its cause has the reason, with advice. From then on only Close is of use.
func (e *Etcd) Broken() context.Context { return e.trouble.broken }

// dial connects the client to the current member.
func (e *Etcd) dial(ctx context.Context, _ string) (net.Conn, error) {
	m := e.member.Load()
	if m == nil {
		return nil, errors.New("etcd is down")
	}
	return m.pipe.DialContext(ctx)
}

// Restart stops the member and starts another one on its data. The client reconnects by itself; its watches lose
// nothing. Concurrent restarts wait for each other. Once the stop has begun, ctx no longer counts, so that etcd is not
// left down. The error is that of ctx, or that the etcd is closed, if nothing was done; a member that does not start
// again breaks the etcd.
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

// Close stops the client and the member and returns when all their goroutines have ended. A second call does nothing.
// The goroutines of a broken etcd cannot end: the process must.
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

// stop clears e.member first: the client reconnects as soon as its connections end.
func (e *Etcd) stop() {
	if m := e.member.Swap(nil); m != nil {
		m.stop()
	}
}

package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"listwatch/internal/routine"
)

// ErrRestarting says that a restart is under way already, and that nothing was done for this one.
var ErrRestarting = errors.New("etcd is being restarted already")

// ErrClosed says that the node was closed.
var ErrClosed = errors.New("etcd has been closed")

// Options says where and how a [Node] keeps its data.
type Options struct {
	Dir     string // holds etcd's "member" folder; created if missing
	Durable bool   // wait for the disk on each write; otherwise data survives the process, but not a power failure
	Quota   int64  // bytes of the whole database, from which on etcd refuses writes; 0: [DefaultQuota]
}

// Node is a running etcd of one member, reached through an in-memory connection.
type Node struct {
	// Set by Start, never changed.
	options Options
	trouble *trouble
	client  *clientv3.Client
	cancel  context.CancelFunc // ends watchFolders
	group   routine.Group

	lifeMu sync.Mutex // held by Restart and Close while they work; taken before mu
	closed bool       // guarded by lifeMu

	mu     sync.Mutex // guards the field below; innermost
	member *member    // nil while down
}

// Start starts etcd on the data in options.Dir and returns when it can be written to. The error is an [*InUseError] if
// another process, or another Node of this one, works on that data, and a [*TroubleError] if etcd cannot go on there.
func Start(ctx context.Context, options Options) (*Node, error) {
	if options.Dir == "" {
		return nil, errors.New("start etcd: no data folder given")
	}
	if err := checkSpace(options.Dir); err != nil {
		return nil, err
	}
	n := &Node{options: options, trouble: newTrouble(options.Dir)}
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	client, err := newClient(n.dial)
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	n.client = client
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a start may be given up, a node is closed
	n.cancel = cancel
	n.group.Go(watching, "etcdnode.watchFolders", func(ctx context.Context) { n.trouble.watchFolders(ctx, options.Dir) })
	return n, nil
}

// Client returns the node's one client. It survives restarts and is closed with the node.
func (n *Node) Client() *clientv3.Client { return n.client }

// Broken is closed when etcd cannot go on; then Err says why, and Close is all that is left to do.
func (n *Node) Broken() <-chan struct{} { return n.trouble.broken }

// Err returns why etcd cannot go on, a [*TroubleError]; nil as long as it can.
func (n *Node) Err() error { return n.trouble.err() }

// Restart stops the server and starts it again on its data. The client reconnects by itself; its watches lose nothing.
// Once the stop has begun, ctx no longer counts: a caller that goes away must not leave etcd down. The error is
// [ErrRestarting] or [ErrClosed], and then nothing was done; a server that does not come back breaks the node.
func (n *Node) Restart(ctx context.Context) error {
	if !n.lifeMu.TryLock() {
		return ErrRestarting
	}
	defer n.lifeMu.Unlock()
	if n.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := n.stop()
	if err == nil {
		err = n.start(context.WithoutCancel(ctx))
	}
	if err != nil {
		n.trouble.report("it did not come back after a restart", err)
	}
	return err
}

// Close stops client and server and returns when nothing of them runs any more. Calling it again does nothing.
// What is left of a broken etcd cannot be ended, only left behind: the process is expected to end.
func (n *Node) Close() error {
	n.lifeMu.Lock() // after a restart that is under way
	defer n.lifeMu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	n.cancel()
	n.group.Wait()
	// The client first: a client without a server would spend its last moments reconnecting.
	return errors.Join(n.client.Close(), n.stop())
}

func (n *Node) start(ctx context.Context) error {
	if err := checkUnused(n.options.Dir); err != nil {
		return err
	}
	m, err := startMember(ctx, loneConfig(n.options, n.trouble.logger()), n.trouble, nil)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.member = m
	return nil
}

func (n *Node) stop() error {
	n.mu.Lock()
	m := n.member
	n.member = nil
	n.mu.Unlock() // early: stopping ends connections, and their client comes back to dial
	if m == nil {
		return nil
	}
	return m.stop()
}

// dial connects the client to the server of the moment.
func (n *Node) dial(ctx context.Context, _ string) (net.Conn, error) {
	n.mu.Lock()
	m := n.member
	n.mu.Unlock() // early: the connection may take a while
	if m == nil {
		return nil, errors.New("etcd is down")
	}
	return m.pipe.DialContext(ctx)
}

func newClient(dial func(context.Context, string) (net.Conn, error)) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"passthrough:///etcd"},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(dial),
			quickToReconnect(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of etcd: %w", err)
	}
	return client, nil
}

// quickToReconnect makes a client notice soon that a server is back: gRPC's own pauses grow to two minutes.
func quickToReconnect() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		MinConnectTimeout: time.Second,
		Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 250 * time.Millisecond},
	})
}

package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/test/bufconn"

	"listwatch/internal/routine"
)

const (
	pipeSize         = 256 << 10       // bytes in flight in each direction of the in-memory connection
	quotaBytes       = 256 << 20       // of the whole database; etcd's own default is 2 GiB
	walSegmentBytes  = 1 << 20         // etcd preallocates two segments: 3 MB on disk instead of 123
	progressInterval = 5 * time.Second // an idle watch that asked for it is told so often how far etcd is; a process-wide setting of etcd
	tick             = 10 * time.Millisecond
	election         = 50 * time.Millisecond // a lone member elects itself; this is most of the start-up time
)

func init() {
	// Both are package variables of their libraries and must be set before anything runs. The second keeps gRPC from
	// writing to stderr each time a connection is lost, which a restart does on purpose.
	wal.SegmentSizeBytes = walSegmentBytes
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// Options says where and how a [Node] keeps its data.
type Options struct {
	Dir     string // holds etcd's "member" folder; created if missing
	Durable bool   // wait for the disk on each write; otherwise data survives the process, but not a power failure
}

// Node is a running etcd of one member.
type Node struct {
	// Set by Start, never changed.
	options Options
	client  *clientv3.Client

	mu     sync.Mutex // guards the fields below
	server *server    // nil while down
	closed bool
}

// server is one life of the etcd server; a restart makes a new one on the same data.
type server struct {
	etcd     *embed.Etcd
	listener *bufconn.Listener
	grpc     *grpc.Server
	group    routine.Group
}

// Start starts etcd on the data in options.Dir and returns when it can be written to. The error is an [*InUseError] if
// another process, or another Node of this one, works on that data.
func Start(ctx context.Context, options Options) (*Node, error) {
	n := &Node{options: options}
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	client, err := newClient(n.dial)
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	n.client = client
	return n, nil
}

// Client returns the node's one client. It survives restarts and is closed with the node.
func (n *Node) Client() *clientv3.Client { return n.client }

// Restart stops the server and starts it again on its data. The client reconnects by itself; its watches lose nothing.
func (n *Node) Restart(ctx context.Context) error {
	if err := n.stop(); err != nil {
		return err
	}
	return n.start(ctx)
}

// Close stops client and server and returns when nothing of them runs any more. Calling it again does nothing.
func (n *Node) Close() error {
	n.mu.Lock()
	again := n.closed
	n.closed = true
	n.mu.Unlock() // early: closing the client may call dial, which takes it
	if again {
		return nil
	}
	// The client first: a client without a server would spend its last moments reconnecting.
	return errors.Join(n.client.Close(), n.stop())
}

func (n *Node) start(ctx context.Context) error {
	if n.options.Dir == "" {
		return errors.New("start etcd: no data folder given")
	}
	if err := checkUnused(n.options.Dir); err != nil {
		return err
	}
	etcd, err := embed.StartEtcd(config(n.options))
	if err != nil {
		return fmt.Errorf("start etcd in %s: %w", n.options.Dir, err)
	}
	select {
	case <-ctx.Done():
		etcd.Close()
		return fmt.Errorf("start etcd in %s: %w", n.options.Dir, ctx.Err())
	case err := <-etcd.Err():
		etcd.Close()
		return fmt.Errorf("start etcd in %s: %w", n.options.Dir, err)
	case <-etcd.Server.ReadyNotify():
	}
	s := &server{etcd: etcd, listener: bufconn.Listen(pipeSize), grpc: v3rpc.Server(etcd.Server, nil, nil)}
	s.group.Go(context.WithoutCancel(ctx), "etcdnode.serve", s.serve)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = s
	return nil
}

// serve runs until the gRPC server is stopped.
func (s *server) serve(context.Context) {
	// The error is that of a stopped server or of a closed listener, both our own doing.
	_ = s.grpc.Serve(s.listener)
}

func (n *Node) stop() error {
	n.mu.Lock()
	s := n.server
	n.server = nil
	n.mu.Unlock() // early: stopping ends connections, and their client comes back to dial
	if s == nil {
		return nil
	}
	s.grpc.Stop()
	s.etcd.Close()
	s.group.Wait()
	return s.listener.Close()
}

// dial connects the client to the server of the moment.
func (n *Node) dial(ctx context.Context, _ string) (net.Conn, error) {
	n.mu.Lock()
	s := n.server
	n.mu.Unlock() // early: the connection may take a while
	if s == nil {
		return nil, errors.New("etcd is down")
	}
	return s.listener.DialContext(ctx)
}

func config(options Options) *embed.Config {
	// Nobody listens there: etcd only insists that the member has a well-formed address.
	nowhere := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c := embed.NewConfig()
	c.Name, c.Dir = "listwatch", options.Dir
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.ListenClientUrls, c.ListenPeerUrls = nil, nil
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = []url.URL{nowhere}, []url.URL{nowhere}
	c.InitialCluster = c.Name + "=" + nowhere.String()
	c.EnableGRPCGateway = false
	c.UnsafeNoFsync = !options.Durable
	c.TickMs, c.ElectionMs = uint(tick.Milliseconds()), uint(election.Milliseconds())
	c.QuotaBackendBytes = quotaBytes
	c.WatchProgressNotifyInterval = progressInterval
	return c
}

func newClient(dial func(context.Context, string) (net.Conn, error)) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{"passthrough:///etcd"},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(dial),
			// Quick to notice that the server is back: nothing is saved by waiting for memory.
			grpc.WithConnectParams(grpc.ConnectParams{
				MinConnectTimeout: time.Second,
				Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 250 * time.Millisecond},
			}),
		},
	})
}

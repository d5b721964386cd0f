package etcdnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"listwatch/internal/observe/routine"
)

// DefaultQuota is of the whole database; etcd's own default is 2 GiB.
const DefaultQuota = 256 << 20

const (
	pipeSize        = 256 << 10 // bytes in flight in each direction of the in-memory connection
	walSegmentBytes = 1 << 20   // etcd preallocates two segments: 3 MB on disk instead of 123

	// How often an idle watch that asked for it is told how far etcd is: a setting of the whole process.
	progressInterval = 5 * time.Second

	// A lone member elects itself, after five ticks at most.
	loneTick     = 10 * time.Millisecond
	loneElection = 5 // ticks

	// How long a tick of a lone member counts when the time for a request is computed: five seconds and two election
	// timeouts. Etcd's clock goes on at a breakpoint, and one process is what is debugged: a stop may take two minutes.
	// The timeout's ticks stay few: etcd passes as many at its start, and asks raft to elect by them while raft replays
	// its log, which etcd compacts meanwhile.
	lonePatience = 12 * time.Second

	// How many writes a lone member keeps in memory: up to these two together. No other member will ever ask for one.
	// Etcd's own defaults keep up to 15,000.
	loneSnapshotCount = 1000
	loneCatchUp       = 100

	// One of several members that hears nothing for an election timeout, or up to twice that, asks to lead.
	clusterTick     = 50 * time.Millisecond
	clusterElection = 10 // ticks

	pingsAllowed = 5 * time.Second // a client of several members may ask as often whether its connection is alive
)

func init() {
	// Both are package variables of their libraries and must be set before anything runs. The second keeps gRPC from
	// writing to stderr each time a connection is lost, which a restart does on purpose.
	wal.SegmentSizeBytes = walSegmentBytes
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// node is one place for a member.
type node struct {
	// Set by Start, never changed.
	name           string
	dir            string
	peers, clients string // addresses of one node of several; "": the node is alone

	member atomic.Pointer[member] // nil while it is down; replaced with Etcd.lifeMu held
}

// member is one life of one etcd server; a restart makes another on the same data.
//
// It is started with the configuration of package embed, but not by embed: between the server's making and its start
// there is something to set, and embed has no such moment.
type member struct {
	// Set before it is stored in its node, never changed.
	server  *etcdserver.EtcdServer
	trouble *trouble
	grpc    *grpc.Server
	pipe    *bufconn.Listener // by which the client reaches a lone member; nil if it is not alone
	peers   *http.Server      // nil if it is alone

	group routine.Group
}

// start starts a member unless one runs, and returns when it can be written to. After an error, also that of ctx,
// nothing of it runs.
func (e *Etcd) start(ctx context.Context, n *node) error {
	if n.member.Load() != nil {
		return nil
	}
	if err := checkUnused(n.dir); err != nil {
		return err
	}
	server, err := e.trouble.newServer(e.config(n))
	if err == nil {
		m := &member{server: server, trouble: e.trouble}
		if e.serverTLS == nil {
			server.Cfg.TickMs = uint(lonePatience.Milliseconds()) // raft was given its own when the server was made
		}
		server.Start()
		if err = m.serve(context.WithoutCancel(ctx), n, e.serverTLS); err == nil {
			err = m.awaitReady(ctx)
		}
		if err == nil {
			n.member.Store(m)
			return nil
		}
		m.stop()
	}
	return fmt.Errorf("start etcd in %s: %w", n.dir, err)
}

// serve starts what serves the member's listeners; stop ends it and closes them. Serve returns the error of a stopped
// server.
func (m *member) serve(ctx context.Context, n *node, secured *tls.Config) error {
	pings := grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAllowed})
	m.grpc = v3rpc.Server(m.server, secured.Clone(), nil, pings) // a clone of nil is nil
	if secured == nil {
		m.pipe = bufconn.Listen(pipeSize)
		m.group.Go(ctx, "etcdnode.serveClients", func(context.Context) { _ = m.grpc.Serve(m.pipe) })
		return nil
	}
	clients, err := net.Listen("tcp", n.clients)
	if err != nil {
		return err
	}
	m.group.Go(ctx, "etcdnode.serveClients", func(context.Context) { _ = m.grpc.Serve(clients) })
	peers, err := net.Listen("tcp", n.peers)
	if err != nil {
		return err
	}
	m.peers = &http.Server{
		Handler:   etcdhttp.NewPeerHandler(m.server.Logger(), m.server),
		TLSConfig: secured.Clone(),             // a server of http writes to it
		ErrorLog:  zap.NewStdLog(zap.NewNop()), // a peer that was stopped breaks its connections
	}
	m.group.Go(ctx, "etcdnode.servePeers", func(context.Context) { _ = m.peers.ServeTLS(peers, "", "") })
	return nil
}

func (m *member) awaitReady(ctx context.Context) error {
	select {
	case <-m.server.ReadyNotify():
		return nil
	case <-m.trouble.broken.Done():
		return context.Cause(m.trouble.broken)
	case <-m.server.StopNotify():
		return errors.New("it stopped by itself")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dial connects the client of a lone node to its member of the moment.
func (n *node) dial(ctx context.Context, _ string) (net.Conn, error) {
	m := n.member.Load()
	if m == nil {
		return nil, errors.New("etcd is down")
	}
	return m.pipe.DialContext(ctx)
}

// stop takes the member away first: stopping it ends connections, and their client comes back at once.
func (n *node) stop() {
	if m := n.member.Swap(nil); m != nil {
		m.stop()
	}
}

// stop returns when nothing of the member runs any more, or, if etcd is broken, when nothing reaches it any more.
func (m *member) stop() {
	m.grpc.Stop()
	stopped := make(chan struct{}) // closed by the goroutine below
	go func() {
		defer close(stopped)
		m.server.HardStop() // no transfer of leadership: what is shown is a member that dies
	}()
	select {
	case <-stopped:
	case <-m.trouble.broken.Done(): // the server may wait for the goroutine that reported it, which never goes on
	}
	if m.peers != nil {
		_ = m.peers.Close() // the error is that of a listener that is closed already
	}
	m.group.Wait()
}

// config is the default configuration of package embed, but for what is named above.
func (e *Etcd) config(n *node) config.ServerConfig {
	d := embed.NewConfig()
	c := config.ServerConfig{
		Name: n.name, DataDir: n.dir, PeerURLs: urls(n.peers), ClientURLs: urls(n.clients),
		InitialPeerURLsMap: types.URLsMap{}, InitialClusterToken: "listwatch", NewCluster: true,
		StrictReconfigCheck: d.StrictReconfigCheck, MaxLearners: d.MaxLearners, V2Deprecation: d.V2Deprecation,
		AuthToken: d.AuthToken, BcryptCost: d.BcryptCost, TokenTTL: d.AuthTokenTTL,
		Logger: zap.NewNop().WithOptions(zap.WithFatalHook(e.trouble), zap.WithPanicHook(e.trouble)),

		InitialElectionTickAdvance: d.InitialElectionTickAdvance,
		SnapshotCount:              d.SnapshotCount, SnapshotCatchUpEntries: d.SnapshotCatchUpEntries,
		MaxSnapFiles: d.MaxSnapFiles, MaxWALFiles: d.MaxWalFiles,
		MaxTxnOps: d.MaxTxnOps, MaxRequestBytes: d.MaxRequestBytes, MaxConcurrentStreams: d.MaxConcurrentStreams,
		QuotaBackendBytes: e.options.Quota, UnsafeNoFsync: !e.options.Durable,
		CompactHashCheckTime: d.CompactHashCheckTime, DowngradeCheckTime: d.DowngradeCheckTime,
		WarningApplyDuration: d.WarningApplyDuration, WarningUnaryRequestDuration: d.WarningUnaryRequestDuration,
		WatchProgressNotifyInterval: progressInterval, ServerFeatureGate: d.ServerFeatureGate,
	}
	for _, each := range e.nodes {
		c.InitialPeerURLsMap[each.name] = urls(each.peers)
	}
	if len(e.nodes) == 1 {
		c.TickMs, c.ElectionTicks = uint(loneTick.Milliseconds()), loneElection
		c.SnapshotCount, c.SnapshotCatchUpEntries = loneSnapshotCount, loneCatchUp
		return c
	}
	c.TickMs, c.ElectionTicks, c.PreVote = uint(clusterTick.Milliseconds()), clusterElection, true
	c.PeerTLSInfo, c.ClientCertAuthEnabled = e.files.info(), true
	return c
}

// urls returns where a member is reached. Etcd insists that a member has a well-formed address, even one that is alone.
func urls(address string) types.URLs {
	if address == "" {
		return types.URLs{url.URL{Scheme: "http", Host: "127.0.0.1:0"}}
	}
	return types.URLs{url.URL{Scheme: "https", Host: address}}
}

package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/test/bufconn"

	"listwatch/internal/observe/routine"
)

const (
	pipeSize        = 256 << 10 // bytes in flight in each direction of the in-memory connection
	walSegmentBytes = 1 << 20   // etcd preallocates two segments: 3 MB on disk instead of 123

	// The period after which an idle watch receives a progress notification: a setting of the whole process.
	progressInterval = 5 * time.Second

	// The member elects itself, after five ticks at most.
	tick     = 10 * time.Millisecond
	election = 5 // ticks

	// How long a tick is in the time limit of a request: five seconds and two election timeouts. Etcd's clock runs on
	// while a debugger stops the process, which may take two minutes. The ticks of the timeout stay few: etcd passes as
	// many at its start, and with them tells raft to elect while raft still replays the log that etcd compacts.
	patience = 12 * time.Second

	// The member keeps at most as many writes in memory as these two together, for no other member needs them. Etcd's
	// own defaults keep up to 15,000.
	snapshotCount = 1000
	catchUp       = 100
)

// address is never dialled. Etcd requires a well-formed one.
var address = types.URLs{url.URL{Scheme: "http", Host: "127.0.0.1:0"}}

func init() {
	// Both are package variables of their libraries and must be set before anything runs. The second keeps gRPC from
	// writing to stderr each time a connection is lost, which a restart does on purpose.
	wal.SegmentSizeBytes = walSegmentBytes
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// member is one etcd server between two restarts.
//
// It uses the configuration of package embed, but not embed itself, which offers no way to change a setting between
// making and starting a server.
type member struct {
	// Set before it is stored in its Etcd, never changed.
	server  *etcdserver.EtcdServer
	trouble *trouble
	grpc    *grpc.Server
	pipe    *bufconn.Listener // by which the client reaches it

	group routine.Group
}

// start starts a member and returns when it can be written to. After an error, also that of ctx, nothing of it runs.
func (e *Etcd) start(ctx context.Context) error {
	dir := e.options.Dir
	if err := checkFolder(dir); err != nil {
		return err
	}
	server, err := e.trouble.newServer(e.config())
	if err != nil {
		return fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	server.Cfg.TickMs = uint(patience.Milliseconds()) // raft has copied the old value
	server.Start()
	m := &member{server: server, trouble: e.trouble, grpc: v3rpc.Server(server, nil, nil),
		pipe: bufconn.Listen(pipeSize)}
	m.group.Go(context.WithoutCancel(ctx), "etcdnode.serve", m.serve)
	if err := m.awaitReady(ctx); err != nil {
		m.stop()
		return fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	e.member.Store(m)
	return nil
}

// serve runs until stop. Serve returns the error of a stopped server.
func (m *member) serve(context.Context) { _ = m.grpc.Serve(m.pipe) }

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

// stop returns when all goroutines of the member have ended, or, if etcd is broken, when no client can reach it.
func (m *member) stop() {
	m.grpc.Stop()
	stopped := make(chan struct{}) // closed by the goroutine below
	go func() {
		defer close(stopped)
		m.server.HardStop() // there is no other member to hand leadership to
	}()
	select {
	case <-stopped:
	case <-m.trouble.broken.Done(): // the server may wait for the goroutine that reported it, which never goes on
	}
	m.group.Wait()
}

// config is the default configuration of package embed, except for the constants above. The quota is etcd's own: 2 GiB.
func (e *Etcd) config() config.ServerConfig {
	d := embed.NewConfig()
	return config.ServerConfig{
		Name: "etcd", DataDir: e.options.Dir, PeerURLs: address, ClientURLs: address,
		InitialPeerURLsMap: types.URLsMap{"etcd": address}, InitialClusterToken: "listwatch", NewCluster: true,
		StrictReconfigCheck: d.StrictReconfigCheck, MaxLearners: d.MaxLearners, V2Deprecation: d.V2Deprecation,
		AuthToken: d.AuthToken, BcryptCost: d.BcryptCost, TokenTTL: d.AuthTokenTTL,
		Logger: zap.NewNop().WithOptions(zap.WithFatalHook(e.trouble), zap.WithPanicHook(e.trouble)),

		TickMs: uint(tick.Milliseconds()), ElectionTicks: election,
		InitialElectionTickAdvance: d.InitialElectionTickAdvance,
		SnapshotCount:              snapshotCount, SnapshotCatchUpEntries: catchUp,
		MaxSnapFiles: d.MaxSnapFiles, MaxWALFiles: d.MaxWalFiles,
		MaxTxnOps: d.MaxTxnOps, MaxRequestBytes: d.MaxRequestBytes, MaxConcurrentStreams: d.MaxConcurrentStreams,
		UnsafeNoFsync:        !e.options.Durable,
		CompactHashCheckTime: d.CompactHashCheckTime, DowngradeCheckTime: d.DowngradeCheckTime,
		WarningApplyDuration: d.WarningApplyDuration, WarningUnaryRequestDuration: d.WarningUnaryRequestDuration,
		WatchProgressNotifyInterval: progressInterval, ServerFeatureGate: d.ServerFeatureGate,
	}
}

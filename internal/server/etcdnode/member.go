package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/test/bufconn"

	"listwatch/internal/observe/routine"
)

const (
	pipeSize        = 256 << 10 // buffer for each direction of the in-memory connection
	walSegmentBytes = 1 << 20   // etcd preallocates two segments: 3 MB on disk instead of 123

	// The period after which an idle watch receives a progress notification. Etcd stores it in a package variable.
	progressInterval = 5 * time.Second

	// The only member elects itself, after at most five ticks.
	tick     = 10 * time.Millisecond
	election = 5 // ticks

	// The length of a tick in a request's time limit, which is five seconds and two election timeouts. Etcd's clock
	// runs on while a debugger stops the process: this limit allows a stop of two minutes. More ticks instead would be
	// wrong: at its start, etcd advances raft by as many, and raft would elect while it still replays its log.
	patience = 12 * time.Second

	// The number of writes between two snapshots, and the number that raft's log keeps in memory when it is compacted,
	// every hundred writes. Etcd's defaults are 10,000 and 5,000. A start replays the writes after the last snapshot,
	// so all of them must be kept: if raft elects meanwhile, it reads the writes that it has not applied yet, and
	// panics if they are compacted.
	snapshotCount = 250
	catchUp       = 2 * snapshotCount
)

// address is never dialed, but etcd requires a well-formed one.
var address = types.URLs{url.URL{Scheme: "http", Host: "127.0.0.1:0"}}

func init() {
	// Both settings are package variables of libraries, and must be set before anything runs. Without the second, gRPC
	// would write to stderr whenever a connection is lost, for example at every restart.
	wal.SegmentSizeBytes = walSegmentBytes
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// member is one etcd server between two restarts.
//
// Most of its settings are package embed's defaults, but embed does not start it: embed allows no change of a setting
// between a server's creation and its start.
type member struct {
	// Set before the member is stored in its Etcd, never changed.
	server  *etcdserver.EtcdServer
	trouble *trouble
	grpc    *grpc.Server
	pipe    *bufconn.Listener // the client dials it

	group routine.Group
}

// start starts a member, and sets e.member when etcd accepts writes. After an error nothing runs unless etcd is broken.
func (e *Etcd) start(ctx context.Context) error {
	dir := e.options.Dir
	if err := checkFolder(dir); err != nil {
		return err
	}
	server, err := e.trouble.newServer(e.config())
	if err != nil {
		return fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	server.Cfg.TickMs = uint(patience.Milliseconds()) // only for requests: raft has copied the old value
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

// serve runs until stop. Serve returns an error only if stop comes first, so serve ignores it.
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

// stop returns when all goroutines of the member have ended. If etcd is broken, stop returns as soon as no client can
// reach the member.
func (m *member) stop() {
	m.grpc.Stop()
	stopped := make(chan struct{}) // closed by the goroutine below
	go func() {
		defer close(stopped)
		m.server.HardStop() // no other member could take the leadership
	}()
	select {
	case <-stopped:
	case <-m.trouble.broken.Done(): // the server may wait for the goroutine in OnWrite, which never returns
	}
	m.group.Wait()
}

// config returns a configuration for [trouble.newServer]. The fields that are set from d have package embed's defaults.
// A field that is missing here is zero: PreVote is false, and a quota of zero is etcd's 2 GiB.
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

// lookTimeout limits the wait for a member's status. On a busy machine a connection alone may take a second.
const lookTimeout = 3 * time.Second

var errFull = errors.New("etcd has used up its quota: " + // etcd's own error has no advice
	"start with another -data-dir, or defragment one that is elsewhere")

// State is the state of an etcd when Look was called. It has at least one member.
type State struct {
	Members []Member `json:"members"`
}

// Member is the state of one member.
type Member struct {
	Name   string `json:"name"`
	Leader bool   `json:"leader"`
	Bytes  int64  `json:"bytes"` // size of the database file, which the quota limits
	Quota  int64  `json:"quota"` // 0: unknown
	Full   bool   `json:"full"`  // whether the quota is used up, so that writes are refused
	Error  string `json:"error,omitempty"`
	led    bool   // whether the member has a leader, itself or another one
}

// Look requests the status of all members at once, and returns after [lookTimeout] at the latest.
func Look(ctx context.Context, client *clientv3.Client) State {
	state := State{Members: make([]Member, len(client.Endpoints()))}
	var asked sync.WaitGroup
	for i, endpoint := range client.Endpoints() {
		asked.Go(func() { state.Members[i] = lookAt(ctx, client, endpoint) })
	}
	asked.Wait()
	return state
}

func lookAt(ctx context.Context, client *clientv3.Client, endpoint string) Member {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	m := Member{Name: endpoint[strings.LastIndex(endpoint, "/")+1:]}
	status, err := status(ctx, client, endpoint)
	if err != nil {
		m.Error = fmt.Sprintf("etcd does not answer: %v", err)
		return m
	}
	m.led, m.Leader = status.Leader != 0, status.Leader == status.Header.MemberId
	m.Bytes, m.Quota = status.DbSize, status.DbSizeQuota
	m.Full = strings.Contains(strings.Join(status.Errors, " "), pb.AlarmType_NOSPACE.String())
	return m
}

// status requests a member's status once. The client's own method would repeat the request until ctx is done.
func status(ctx context.Context, client *clientv3.Client, endpoint string) (*pb.StatusResponse, error) {
	conn, err := client.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
}

// Ready returns why writes would fail, or nil if they would not.
func (s State) Ready() error {
	why := s.Members[0].Error // the error that is returned if no member answers
	for _, m := range s.Members {
		switch {
		case m.Full: // every member reports a full database
			return errFull
		case m.led:
			return nil
		case m.Error == "":
			why = "etcd has no leader"
		}
	}
	return errors.New(why)
}

// String describes whether etcd accepts writes, and which of several members leads.
func (s State) String() string {
	if err := s.Ready(); err != nil {
		return "it takes no writes, because " + err.Error()
	}
	for _, m := range s.Members {
		if m.Leader && len(s.Members) > 1 {
			return "it takes writes, and " + m.Name + " leads"
		}
	}
	return "it takes writes"
}

// keepAlive is the silence after which the client pings a connection, and the further silence after which the
// connection counts as lost. gRPC allows no shorter time before a ping.
const keepAlive = 10 * time.Second

// TLSFiles are paths of PEM files for an etcd with TLS. Cert and Key identify the client; all empty: no TLS.
type TLSFiles struct{ CACert, Cert, Key string }

// Dial returns a client of an etcd that runs elsewhere, or an error if no endpoint answers now. Endpoints have the
// forms "http://127.0.0.1:2379", "127.0.0.1:2379" and "unix:///run/etcd.sock"; with files, "https://127.0.0.1:2379".
// The caller closes the client.
func Dial(ctx context.Context, endpoints []string, files TLSFiles) (*clientv3.Client, error) {
	client, err := newClient(endpoints, files, keepAlive)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", strings.Join(endpoints, ", "), err)
	}
	for _, member := range Look(ctx, client).Members {
		if member.Error == "" {
			return client, nil
		}
		err = errors.New(member.Error)
	}
	err = fmt.Errorf("etcd at %s cannot be reached: %w", strings.Join(endpoints, ", "), err)
	return nil, errors.Join(err, client.Close())
}

// newClient returns a client that pings an endpoint after this much silence; 0: never. It reconnects soon after an
// endpoint is back, while gRPC's own pauses would grow to two minutes.
func newClient(endpoints []string, files TLSFiles, silence time.Duration, options ...grpc.DialOption) (
	_ *clientv3.Client, err error) {
	config := clientv3.Config{Endpoints: endpoints, DialKeepAliveTime: silence, DialKeepAliveTimeout: silence,
		Logger: zap.NewNop()}
	if files != (TLSFiles{}) {
		info := transport.TLSInfo{CertFile: files.Cert, KeyFile: files.Key, TrustedCAFile: files.CACert}
		if config.TLS, err = info.ClientConfig(); err != nil {
			return nil, fmt.Errorf("read the certificates for etcd: %w", err)
		}
	}
	pauses := backoff.Config{
		BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 250 * time.Millisecond,
	}
	config.DialOptions = append(options,
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second, Backoff: pauses}))
	return clientv3.New(config)
}

package etcdnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, dir string) *Etcd {
	t.Helper()
	node := require.Value(Start(context.Background(), Options{Dir: dir}))(t)
	t.Cleanup(func() {
		assert.NoError(t, node.Close())
	})
	return node
}

// put writes the key "a".
func put(t *testing.T, c *clientv3.Client, value string) {
	t.Helper()
	require.Value(c.Put(t.Context(), "a", value))(t)
}

func TestDataSurvivesClose(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		dir := t.TempDir()
		first := require.Value(Start(context.Background(), Options{Dir: dir, Durable: durable}))(t)
		put(t, first.Client(), "1")
		require.NoError(t, errors.Join(first.Close(), first.Close()), "close twice")
		response, err := start(t, dir).Client().Get(context.Background(), "a")
		assert.True(t, err == nil && len(response.Kvs) == 1 && string(response.Kvs[0].Value) == "1",
			"durable %v: got %v, %v, want a=1", durable, response, err)
	}
}

func TestWatchLosesNothingOverARestart(t *testing.T) {
	t.Parallel()
	node := start(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	watched := node.Client().Watch(ctx, "a", clientv3.WithCreatedNotify())
	created := <-watched
	require.True(t, created.Created, "got %v, want the news that the watch exists", created)
	put(t, node.Client(), "1")
	require.NoError(t, node.Restart(ctx))
	put(t, node.Client(), "2")
	var values []string
	for len(values) < 2 {
		for _, e := range (<-watched).Events {
			values = append(values, string(e.Kv.Value))
		}
	}
	assert.Equal(t, "1 2", strings.Join(values, " "))
	cancel()
	for range watched {
	}
}

// restarting returns while a restart has stopped the member and not yet started it again. The channel receives the
// restart's error. On a busy machine a restart may end too early to be seen: restarting then starts another one.
func (e *Etcd) restarting(ctx context.Context, t *testing.T) <-chan error {
	t.Helper()
	for {
		restarted := make(chan error, 1) // sent once, by the goroutine below
		go func() { restarted <- e.Restart(ctx) }()
		for e.member.Load() != nil && len(restarted) == 0 {
			runtime.Gosched()
		}
		if len(restarted) == 0 {
			return restarted
		}
		require.NoError(t, <-restarted)
	}
}

func TestACallerWhoGoesAwayDoesNotLeaveEtcdDown(t *testing.T) {
	t.Parallel()
	node := start(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	restarted := node.restarting(ctx, t)
	cancel()
	assert.NoError(t, <-restarted, "the restart")
	put(t, node.Client(), "1")
	err := node.Restart(ctx)
	assert.True(t, errors.Is(err, context.Canceled), "a restart whose caller has gone before it began: got %v", err)
	put(t, node.Client(), "2")
}

func TestOneRestartAtATime(t *testing.T) {
	t.Parallel()
	node := start(t, t.TempDir())
	first := node.restarting(t.Context(), t)
	assert.NoError(t, errors.Join(node.Restart(t.Context()), <-first), "two restarts")
	put(t, node.Client(), "1")
}

func TestCloseWaitsForARestart(t *testing.T) {
	t.Parallel()
	node := require.Value(Start(t.Context(), Options{Dir: t.TempDir()}))(t)
	restarted := node.restarting(t.Context(), t)
	assert.NoError(t, errors.Join(node.Close(), <-restarted))
	err := node.Restart(t.Context())
	assert.True(t, errors.Is(err, errClosed), "after Close: got %v, want errClosed", err)
}

func TestARequestMayTakeTwoMinutes(t *testing.T) {
	t.Parallel()
	cfg := start(t, t.TempDir()).member.Load().server.Cfg
	assert.Equal(t, 125*time.Second, cfg.ReqTimeout())
}

// TestAStartCompactsNothingThatItReplays expects that etcd keeps twice the writes between snapshots: those after the
// last snapshot, and those under way at the snapshot. On a busy machine raft elects while replaying them, and panics if
// a write that it has not applied yet is compacted.
func TestAStartCompactsNothingThatItReplays(t *testing.T) {
	t.Parallel()
	cfg := start(t, t.TempDir()).member.Load().server.Cfg
	assert.True(t, cfg.SnapshotCatchUpEntries >= 2*cfg.SnapshotCount, "%d writes are kept, and %d may be replayed",
		cfg.SnapshotCatchUpEntries, cfg.SnapshotCount)
}

func wantInUse(t *testing.T, dir string) {
	t.Helper()
	node, err := Start(context.Background(), Options{Dir: dir})
	if err == nil {
		node.Close()
	}
	require.True(t, err != nil && strings.Contains(err.Error(), dir+" is in use"),
		"got %v, want an error that names %s", err, dir)
}

func TestStartWithoutAFolderIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Start(context.Background(), Options{})
	assert.True(t, err != nil && strings.Contains(err.Error(), "no data folder"), err)
}

func TestFolderInUseByThisProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := start(t, dir)
	wantInUse(t, dir)
	put(t, node.Client(), "1") // the first etcd still works
}

func TestAFolderThatThreeNodesMadeIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "etcd-1", "member"), 0o700))
	e, err := Start(t.Context(), Options{Dir: dir})
	if err == nil {
		e.Close()
	}
	assert.True(t, err != nil && strings.Contains(err.Error(), dir+" was made by three nodes"), "got %v", err)
	made, _ := filepath.Glob(dir + "/*")
	assert.EqualSlices(t, []string{filepath.Join(dir, "etcd-1")}, made, "got %v, want what was there", made)
}

// serveOn serves the node's etcd on a port, like an etcd elsewhere, and returns the address. secured nil: no TLS.
func serveOn(t *testing.T, node *Etcd, secured *tls.Config) string {
	t.Helper()
	listener := require.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := v3rpc.Server(node.member.Load().server, secured, nil)
	served := make(chan error, 1) // sent once, by the goroutine below
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		assert.NoError(t, <-served)
	})
	return listener.Addr().String()
}

func TestDialShowsACertificate(t *testing.T) {
	t.Parallel()
	made := require.Value(transport.SelfCert(zap.NewNop(), t.TempDir(), []string{"127.0.0.1:0"}, 1,
		x509.ExtKeyUsageClientAuth))(t)
	made.ClientCertAuth, made.TrustedCAFile = true, made.CertFile
	address := serveOn(t, start(t, t.TempDir()), require.Value(made.ServerConfig())(t))
	endpoints := []string{"https://" + address}
	files := TLSFiles{CACert: made.CertFile, Cert: made.CertFile, Key: made.KeyFile}
	client := require.Value(Dial(t.Context(), endpoints, files))(t)
	put(t, client, "1")
	client.Close()
	_, err := Dial(t.Context(), endpoints, TLSFiles{CACert: made.CertFile})
	assert.True(t, err != nil, "a client without a certificate is let in")
}

func TestDialSaysWhatCannotBeReached(t *testing.T) {
	t.Parallel()
	listener := require.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	listener.Close() // the address now refuses connections
	_, err := Dial(context.Background(), []string{address}, TLSFiles{})
	assert.True(t, err != nil && strings.Contains(err.Error(), address+" cannot be reached"),
		"got %v, want an error that names %s", err, address)
	assert.True(t, assert.ErrorOf(Dial(context.Background(), nil, TLSFiles{})) != nil, "no endpoints: got no error")
}

package program

import (
	"listwatch/internal/check/require"
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Etcd is a real etcd with a port, so that the program and a test can look at the same one.
type Etcd struct {
	Client   *clientv3.Client
	Endpoint string // 127.0.0.1:PORT
}

// StartEtcd starts an etcd in this process, for as long as the test runs.
func StartEtcd(tb testing.TB) *Etcd {
	tb.Helper()
	config := embed.NewConfig()
	config.Dir = tb.TempDir()
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.ListenPeerUrls, config.AdvertisePeerUrls = nil, []url.URL{anyPort}
	config.InitialCluster = config.Name + "=" + anyPort.String()
	config.UnsafeNoFsync = true
	config.TickMs, config.ElectionMs = 10, 50
	etcd, err := embed.StartEtcd(config)
	require.NoError(tb, err)
	tb.Cleanup(etcd.Close)
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(HangsAfter):
		tb.Fatal("etcd is not ready")
	}
	endpoint := etcd.Clients[0].Addr().String()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = client.Close() })
	return &Etcd{Client: client, Endpoint: endpoint}
}

package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// keepAlive is how long a connection may be silent before the client pings it, and then before it counts as lost. By
// default etcd refuses clients that ping more often.
const keepAlive = 10 * time.Second

// TLSFiles are the files for an etcd that requires client certificates. Empty: no TLS.
type TLSFiles struct{ CACert, Cert, Key string }

// Dial returns a client of an etcd that runs elsewhere, if one of its endpoints answers now. Endpoints have the
// forms "http://127.0.0.1:2379", "127.0.0.1:2379" and "unix:///run/etcd.sock"; with files, "https://127.0.0.1:2379".
// The caller closes the client.
func Dial(ctx context.Context, endpoints []string, files TLSFiles) (*clientv3.Client, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("connect to etcd: no endpoint given")
	}
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

// newClient returns a client that pings an endpoint after such a silence; 0: never. It reconnects soon after an
// endpoint is back: gRPC's own pauses grow to two minutes.
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

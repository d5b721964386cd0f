package etcdnode

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// keepAlive is how long a connection may be silent before it is asked, and then until it counts as lost. Less than etcd
// allows its clients by default would be refused.
const keepAlive = 10 * time.Second

// certificateYears is how long a certificate is valid: etcd counts in years. Each start makes another.
const certificateYears = 1

// TLSFiles name what a program needs to talk to an etcd that asks its clients for a certificate. Empty: no TLS.
type TLSFiles struct{ CACert, Cert, Key string }

// info returns the files in etcd's words. A server of them asks its clients for a certificate.
func (f TLSFiles) info() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: f.Cert, KeyFile: f.Key, TrustedCAFile: f.CACert, ClientCertAuth: true, Logger: zap.NewNop(),
	}
}

// newCertificate lets etcd make a certificate for loopback, in files of dir. Nodes and clients all show this one, and
// trust no other.
func newCertificate(dir string) (files TLSFiles, err error) {
	for _, old := range []string{"cert.pem", "key.pem"} {
		// etcd would keep the ones of the last start
		if err := os.Remove(filepath.Join(dir, old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return TLSFiles{}, fmt.Errorf("replace etcd's certificate: %w", err)
		}
	}
	hosts := []string{"127.0.0.1:0", "localhost:0"}
	made, err := transport.SelfCert(zap.NewNop(), dir, hosts, certificateYears, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return TLSFiles{}, fmt.Errorf("make etcd's certificate: %w", err)
	}
	return TLSFiles{CACert: made.CertFile, Cert: made.CertFile, Key: made.KeyFile}, nil
}

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
	for _, member := range NewKeeper(ctx, client, false).State().Members {
		if err = member.err; err == nil {
			return client, nil
		}
	}
	err = fmt.Errorf("etcd at %s cannot be reached: %w", strings.Join(endpoints, ", "), err)
	return nil, errors.Join(err, client.Close())
}

// newClient returns a client that asks an endpoint after so long a silence whether it is there, or, if that is 0,
// never; and that finds out soon that one is back: gRPC's own pauses grow to two minutes.
func newClient(endpoints []string, files TLSFiles, silence time.Duration, options ...grpc.DialOption) (
	_ *clientv3.Client, err error) {
	config := clientv3.Config{Endpoints: endpoints, DialKeepAliveTime: silence, DialKeepAliveTimeout: silence,
		Logger: zap.NewNop()}
	if files != (TLSFiles{}) {
		if config.TLS, err = files.info().ClientConfig(); err != nil {
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

package etcdnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// dialTimeout is how long an etcd elsewhere has to answer before it counts as unreachable.
const dialTimeout = 5 * time.Second

// keepAlive is how long a connection may be silent before it is asked, and then until it counts as lost. Less than etcd
// allows its clients by default would be refused.
const keepAlive = 10 * time.Second

// Dial returns a client of an etcd that runs elsewhere, once one of its endpoints has answered. Endpoints have the
// forms "http://127.0.0.1:2379", "127.0.0.1:2379" and "unix:///run/etcd.sock"; with files, "https://127.0.0.1:2379".
// The caller closes the client.
func Dial(ctx context.Context, endpoints []string, files TLSFiles) (*clientv3.Client, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("connect to etcd: no endpoint given")
	}
	config, err := files.clientTLS()
	if err != nil {
		return nil, err
	}
	client, err := dialTLS(endpoints, config)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", strings.Join(endpoints, ", "), err)
	}
	if err := probeEndpoints(ctx, client); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd at %s cannot be reached: %w", strings.Join(endpoints, ", "), err), client.Close())
	}
	return client, nil
}

// dialTLS returns a client that finds out within seconds that an endpoint is gone, and at once that it is back.
func dialTLS(endpoints []string, config *tls.Config) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: config, Logger: zap.NewNop(),
		DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAlive,
		DialOptions: []grpc.DialOption{quickToReconnect()},
	})
}

// probeEndpoints returns nil as soon as one endpoint has answered, and otherwise the last error. All are asked at once: asking one that
// is gone takes all the time there is. The other questions are cancelled then; their goroutines end soon after, and do not wait to be
// heard: answers has room for all.
func probeEndpoints(ctx context.Context, client *clientv3.Client) (err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	answers := make(chan error, len(client.Endpoints())) // sent once for each endpoint
	for _, endpoint := range client.Endpoints() {
		go func() {
			_, err := client.Status(ctx, endpoint)
			answers <- err
		}()
	}
	for range client.Endpoints() {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// dialTimeout is how long an etcd elsewhere has to answer before it counts as unreachable.
const dialTimeout = 3 * time.Second

// Dial returns a client of an etcd that runs elsewhere, once one of its endpoints has answered. Endpoints have the
// forms "http://127.0.0.1:2379", "127.0.0.1:2379" and "unix:///run/etcd.sock". The caller closes the client.
func Dial(ctx context.Context, endpoints []string) (*clientv3.Client, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("connect to etcd: no endpoint given")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", strings.Join(endpoints, ", "), err)
	}
	if err := probeEndpoints(ctx, client); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd at %s cannot be reached: %w", strings.Join(endpoints, ", "), err), client.Close())
	}
	return client, nil
}

// probeEndpoints returns nil as soon as one endpoint has answered, and otherwise the last error.
func probeEndpoints(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var last error
	for _, endpoint := range client.Endpoints() {
		_, err := client.Status(ctx, endpoint)
		if err == nil {
			return nil
		}
		last = err
	}
	return last
}

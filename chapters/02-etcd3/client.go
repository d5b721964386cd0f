package etcd3

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/metadata"
)

// Client is all that a server needs of etcd: the few calls that etcd's own client package makes for Kubernetes, the
// watch, leases and compaction. Two types implement it: [NewClient], and an in-memory one for tests.
//
// Every call is given a context and lasts as long as that context lets it: this package sets no deadline of its own.
type Client interface {
	kubernetes.Interface

	// Watch returns the changes of key from a revision on. The channel is closed when ctx is done, or after a response
	// with an error. No change in between is lost, even if the server is away for a while.
	Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan

	// RequestProgress asks etcd to send a progress notification to all watches on ctx's stream: those whose contexts
	// have the same gRPC metadata. etcd sends none unless all of them have caught up; callers ask again.
	// RequestProgress does not wait for the answer.
	RequestProgress(ctx context.Context) error

	// GrantLease returns a lease that lasts for ttl, in whole seconds, or longer. When it ends, the keys that were last
	// written under it are deleted: by etcd all at one revision, by the in-memory client each at its own.
	GrantLease(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error)

	// CompactHistory forgets every revision before rev.
	CompactHistory(ctx context.Context, rev int64) error
}

// NewClient makes an etcd client a Client. The caller closes it.
func NewClient(c *clientv3.Client) Client { return etcdClient{kubernetes.Client{Client: c}} }

// etcdClient has Get, List and the optimistic writes from kubernetes.Client, which shadow those of the clientv3.Client
// inside it, and the watch from the latter.
type etcdClient struct{ kubernetes.Client }

func (c etcdClient) CompactHistory(ctx context.Context, rev int64) error {
	_, err := c.Compact(ctx, rev)
	return err
}

func (c etcdClient) GrantLease(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	response, err := c.Grant(ctx, int64(ttl.Seconds()))
	if err != nil {
		return clientv3.NoLease, err
	}
	return response.ID, nil
}

// resourceHeader names the resource whose watches share a stream.
const resourceHeader = "listwatch-resource"

// watchContext asks that a watch end with an error when its server has lost the leader, instead of staying silent
// behind a network partition. A progress request must carry the same metadata, or it goes to another stream.
//
// The resource is part of that metadata, so that each resource has its own stream. etcd answers a progress request for
// a stream as a whole, and only if every watch on it has caught up; a watch that begins after the newest revision
// counts as one that has not. On one stream for all, a quiet watch of events would keep every reader of pods waiting.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).watchContext
// Differs: upstream's streams are apart because each resource has an etcd client, and so a connection, of its own.
func (s *Store) watchContext(ctx context.Context) context.Context {
	own := metadata.AppendToOutgoingContext(withoutDeadline{ctx}, resourceHeader, s.resourcePrefix)
	return clientv3.WithRequireLeader(own)
}

// withoutDeadline hides a context's deadline, but not its end. A watch's context has a deadline on the injected clock;
// etcd's client would compare that with the wall clock, which may be long past it.
type withoutDeadline struct{ context.Context }

func (withoutDeadline) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

package etcd3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// The two implementations of a watch.
const (
	WatcherEtcd3 = "etcd3" // watchChan: ordered concurrent decoding; a bad value ends the watch
	WatcherEtcd2 = "etcd2" // etcdWatcher, a reconstruction: incoming, translate, outgoing; a bad value is skipped
)

// Config describes the objects of a [Store], and their place in etcd.
type Config struct {
	Client         Client
	Codec          runtime.Codec         // made by [NewCodec]
	NewFunc        func() runtime.Object // an empty object of the kind that is stored
	ResourcePrefix string                // "/registry/pods": begins with a slash, does not end with one
	TTL            time.Duration         // the time after its last write at which etcd deletes an object; 0: never
	Clock          clock.WithTicker      // required with a TTL: it measures how long a lease is shared
	Probe          *probe.Probe          // of the resource
	Watcher        string                // [WatcherEtcd3] or [WatcherEtcd2]; "" means the former
}

// Store is the source of truth: every write passes through it, and everything that a client
// sees began as one of its revisions. An object's resource version is the revision that last
// wrote it; a list's is the revision at which the list was read.
//
// All methods are safe for concurrent use. No lock is held during a call: etcd's transactions
// are the lock.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: store
// Differs: no encryption, one time to live for all objects of a store, no size estimator, no
// unsafe deletion of objects that do not decode.
type Store struct {
	// Set by New, never changed.
	client         Client
	codec          runtime.Codec
	newFunc        func() runtime.Object
	resourcePrefix string
	versioner      storage.APIObjectVersioner
	probe          *probe.Probe
	watcher        string
	leases         *leaseManager

	nWatches atomic.Int64 // watches begun so far: each gets the next number as its name

	mu      sync.Mutex // guards the field below; innermost
	watches []*stream  // that have begun and not ended, for Snapshot
}

var _ storage.Interface = (*Store)(nil)

// New returns a store for one resource, or an error if a required field of cfg is empty or makes no sense. New does not
// talk to etcd yet.
func New(cfg Config) (*Store, error) {
	if !strings.HasPrefix(cfg.ResourcePrefix, "/") || strings.HasSuffix(cfg.ResourcePrefix, "/") {
		return nil, fmt.Errorf("etcd3 store: resource prefix %q must begin with a slash and not end with one",
			cfg.ResourcePrefix)
	}
	switch cfg.Watcher {
	case "":
		cfg.Watcher = WatcherEtcd3
	case WatcherEtcd3, WatcherEtcd2:
	default:
		return nil, fmt.Errorf("etcd3 store: unknown watcher %q, want %s or %s", cfg.Watcher, WatcherEtcd3,
			WatcherEtcd2)
	}
	if cfg.Client == nil || cfg.Codec == nil || cfg.NewFunc == nil {
		return nil, fmt.Errorf("etcd3 store of %s: client, codec and NewFunc are required", cfg.ResourcePrefix)
	}
	return &Store{
		client: cfg.Client, codec: cfg.Codec, newFunc: cfg.NewFunc, resourcePrefix: cfg.ResourcePrefix,
		probe: cfg.Probe, watcher: cfg.Watcher, leases: newLeaseManager(cfg.Client, cfg.Clock, cfg.TTL),
	}, nil
}

// Get implements [storage.Interface]. It reads the newest state, and returns 504 if that is older than asked for.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).Get
func (s *Store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := storage.PrepareKey(s.resourcePrefix, key, false)
	if err != nil {
		return err
	}
	response, err := s.client.Get(ctx, key, kubernetes.GetOptions{})
	if err != nil {
		return interpretError(err, key)
	}
	if err := s.validateMinimumResourceVersion(opts.ResourceVersion, response.Revision); err != nil {
		return err
	}
	if response.KV == nil {
		if opts.IgnoreNotFound {
			return runtime.SetZeroValue(out)
		}
		return storage.NewKeyNotFoundError(key, 0)
	}
	return s.decode(key, response.KV.Value, response.KV.ModRevision, out)
}

// GetCurrentResourceVersion implements [storage.Interface]. It reads a key that never exists, because every answer
// carries the newest revision, and a read of one key is the cheapest that cannot be stale.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).GetCurrentResourceVersion
func (s *Store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	response, err := s.client.Get(withoutDeadline{ctx}, s.resourcePrefix, kubernetes.GetOptions{})
	if err != nil {
		return 0, interpretError(err, s.resourcePrefix)
	}
	return uint64(response.Revision), nil
}

// RequestWatchProgress implements [storage.Interface].
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).RequestWatchProgress
func (s *Store) RequestWatchProgress(ctx context.Context) error {
	return s.client.RequestProgress(s.watchContext(ctx))
}

// Watch implements [storage.Interface]. The key is one object's, or with opts.Recursive a prefix. With a resource
// version the watch begins after it; without one it begins with the current state, unless opts.SendInitialEvents is
// false, which means "from now". Errors that come later arrive as one ERROR event, after which the channel is closed.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).Watch
func (s *Store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	key, err := storage.PrepareKey(s.resourcePrefix, key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	rv, err := s.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	return s.startWatch(s.watchContext(ctx), key, int64(rv), opts)
}

// decode fills out with stored bytes and stamps it with rev. The error is 500 InternalError.
func (s *Store) decode(key string, data []byte, rev int64, out runtime.Object) error {
	obj, kind, err := s.codec.Decode(data, nil, out)
	switch {
	case len(data) == 0:
		err = errors.New("it is empty") // a codec makes no bytes into an object without fields
	case err == nil && obj != out:
		// If the bytes name another kind, a codec makes a new object of that kind, and does not fill out.
		err = fmt.Errorf("it is a %v, want a %T", kind, out)
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("decode %s at revision %d: %w", key, rev, err))
	}
	return s.versioner.UpdateObject(out, uint64(rev))
}

// validateMinimumResourceVersion returns an error if a reader asked for at least a resource version that the store has
// not reached: 504 with cause ResourceVersionTooLarge.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).validateMinimumResourceVersion
func (s *Store) validateMinimumResourceVersion(minimum string, actual int64) error {
	rv, err := s.versioner.ParseResourceVersion(minimum)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if rv > uint64(actual) {
		return storage.NewTooLargeResourceVersionError(rv, uint64(actual), 0)
	}
	return nil
}

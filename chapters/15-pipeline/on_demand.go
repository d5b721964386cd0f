package pipeline

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	cacher "listwatch/chapters/06-cacher"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/observe/routine"
)

// beginPatience is how long a request waits for a cache that begins with it. Then the cache answers as any that is not
// ready: 429, with the time after which to come again.
const beginPatience = 3 * time.Second

// onDemand is the storage of a resource whose cache begins when it is first wanted: by a watch, or by a list that names
// a version. Until then, and for everything else, the embedded store answers, which is etcd's. So discovery, kubectl
// get and the deletion of a namespace start no cache.
//
// Differs: upstream begins every cache with the server, but those of custom resources, which begin with the first
// request.
type onDemand struct {
	*etcd3.Store
	resource *registry.Resource
	server   *Server // makes the cache, and runs it

	once   sync.Once
	begun  atomic.Bool // set when the fields below are
	cacher *cacher.Cacher
	cached storage.Interface
	err    error

	stopping chan struct{} // closed by stop, never sent on
	ended    chan struct{} // closed when there is no cache any more, or will be none; never sent on
}

func newOnDemand(s *Server, resource *registry.Resource, raw *etcd3.Store) *onDemand {
	return &onDemand{Store: raw, resource: resource, server: s, stopping: make(chan struct{}),
		ended: make(chan struct{})}
}

// Watch begins the cache, and is answered by it.
func (o *onDemand) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	cached, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	return cached.Watch(ctx, key, opts)
}

// GetList begins the cache if opts names a version.
func (o *onDemand) GetList(ctx context.Context, key string, opts storage.ListOptions, listOut runtime.Object) error {
	if opts.ResourceVersion == "" && !o.begun.Load() {
		return o.Store.GetList(ctx, key, opts, listOut)
	}
	cached, err := o.begin(ctx)
	if err != nil {
		return err
	}
	return cached.GetList(ctx, key, opts, listOut)
}

// begin returns the storage with its cache in front, when that is ready or beginPatience is over.
func (o *onDemand) begin(ctx context.Context) (storage.Interface, error) {
	o.once.Do(func() {
		if o.cacher, o.cached, o.err = o.server.cache(o.resource, o.Store); o.err != nil {
			close(o.ended)
			return
		}
		o.begun.Store(true)
		o.server.late <- o
	})
	if o.err != nil {
		return nil, o.err
	}
	if o.cacher.Ready() {
		return o.cached, nil
	}
	waits, end := routine.WithTimeout(ctx, cmp.Or(o.server.config.Patience, o.server.config.Clock), beginPatience)
	defer end()
	_ = o.cacher.Wait(waits) // a cache that is not ready says so itself
	return o.cached, nil
}

// run runs the cache, until ctx is done or the storage is stopped.
func (o *onDemand) run(ctx context.Context) {
	defer close(o.ended)
	running, end := context.WithCancel(ctx)
	var group routine.Group
	group.Go(running, "cacher", o.cacher.Run)
	select {
	case <-ctx.Done():
	case <-o.stopping:
	}
	end()
	group.Wait()
	if ctx.Err() == nil {
		o.server.forget(o)
	}
}

// errStopped is the answer to a request that has found the storage before another took its place. The client comes
// again, and finds that one.
var errStopped = apierrors.NewTooManyRequests("the definition of this resource has changed", 1)

// stop ends the cache, and with it all watches, and returns when its goroutines have ended, or false when ctx is done
// before. If there is no cache, none will begin: once decides between a stop and a request that wants one. It is called
// once.
func (o *onDemand) stop(ctx context.Context) bool {
	o.once.Do(func() {
		o.err = errStopped
		close(o.ended)
	})
	close(o.stopping)
	select {
	case <-o.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

package pipeline

import (
	"cmp"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	cacher "listwatch/chapters/06-cacher"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/kube/scheme"
)

// stack is what one kind is made of, from etcd upwards. All kinds are made alike.
type stack struct {
	resource *registry.Resource
	store    *etcd3.Store      // reads and writes etcd
	cacher   *cacher.Cacher    // nil: reads go to etcd, too
	storage  storage.Interface // a delegator before both; without a cacher it is store
	registry registry.Config   // of the registry stores, which the handlers call
}

// uncached are the resources that are served straight from etcd. Upstream keeps no cache of
// events either: they are written all the time and hardly ever read.
var uncached = map[string]bool{"events": true}

// build makes the stack of a resource. [Server.Run] runs its cache.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).CompleteWithOptions
func (s *Server) build(resource *registry.Resource) (*stack, error) {
	p := s.config.Probe.Resource(resource.Name)
	store, err := s.newStore(resource)
	if err != nil {
		return nil, err
	}
	built := &stack{resource: resource, store: store, storage: store}
	if !uncached[resource.Name] {
		built.cacher, built.storage, err = s.cache(resource, store)
	}
	built.registry = registry.Config{Resource: resource, Storage: built.storage,
		Clock: s.config.Clock, Probe: p}
	return built, err
}

// newStore returns the etcd3 store of a resource.
//
// Upstream: k8s.io/apiserver/pkg/server/options/etcd.go: (*StorageFactoryRestOptionsFactory).GetRESTOptions
// Differs: called for every kind; upstream calls decorators, such as UndecoratedStorage, which
// calls NewRawStorage and factory.Create.
func (s *Server) newStore(resource *registry.Resource) (*etcd3.Store, error) {
	mediaType := cmp.Or(s.config.MediaType, etcd3.MediaTypeProtobuf)
	codec, err := etcd3.NewCodec(scheme.Codecs, resource.GroupVersion, mediaType)
	if err != nil {
		return nil, err
	}
	return etcd3.New(etcd3.Config{
		Client: s.config.Client, Codec: codec, NewFunc: resource.NewFunc,
		ResourcePrefix: resource.Prefix, TTL: resource.TTL, Watcher: s.config.EtcdWatcher,
		Clock: s.config.Clock, Probe: s.config.Probe.Resource(resource.Name),
	})
}

// cache puts a cache in front of store, and the delegator in front of both.
func (s *Server) cache(resource *registry.Resource, store *etcd3.Store) (*cacher.Cacher, storage.Interface, error) {
	config := resource.CacherConfig()
	config.Clock, config.Patience = s.config.Clock, s.config.Patience
	config.Probe = s.config.Probe.Resource(resource.Name)
	config.Registry, config.Compaction = s.metrics, s.compactor
	config.RingCapacity, config.Dispatch = s.config.RingCapacity, s.config.Dispatch
	config.UseWatchList = s.config.UseWatchList
	return registry.StorageWithCacher(store, config)
}

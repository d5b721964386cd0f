package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	cacher "listwatch/chapters/06-cacher"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/apiserver"
)

// ServerConfig says what the server half is made of. Client and Clock are required.
type ServerConfig struct {
	Client etcd3.Client
	// why etcd would refuse a write, without asking it now; nil: readiness does not look at etcd
	EtcdReady func() error
	Clock     clock.WithTicker
	// by which reads wait for a fresh cache, and handlers for a client's socket; nil: Clock
	Patience     clock.WithTicker
	Probe        *probe.Probe // nil: off
	MediaType    string       // in which objects are stored; "": protobuf
	EtcdWatcher  string       // [etcd3.WatcherEtcd3] or [etcd3.WatcherEtcd2]; "": the former
	Dispatch     string       // [cacher.TwoPhase] or [cacher.Sequential]; "": the former
	RingCapacity int          // of every cache; 0: dynamic
	UseWatchList bool         // caches get their first state as a stream
}

// Server is the server half: for each resource an etcd3 store, a Cacher in front of it and a registry store on top, and
// before them all the handlers.
type Server struct {
	// Set by NewServer, never changed.
	config     ServerConfig
	stored     map[string]registry.Config // by resource; their storages are behind their caches
	namespaces *registry.Store
	started    []*cacher.Cacher // those that begin with the server
	compactor  *etcd3.Compactor
	registry   *prometheus.Registry // of everything that is shown at /metrics
	custom     *definitions
	api        *apiserver.API
	shutdown   chan struct{} // closed by EndStreams, never sent on
	prepared   chan struct{} // closed by prepare, never sent on
	prepare    func()        // called in postStart, once or more, when clients may come
	stopped    chan struct{} // closed when postStart returns, never sent on

	// late brings the caches that begin on demand to Run. It has room for each that may begin before Run does. It is
	// sent to once for each, and never closed.
	late chan *onDemand

	watchers atomic.Int64 // numbers those of custom resources, whose caches take each other's place

	mu      sync.Mutex // guards the fields below, which grow when a cache begins
	stores  []*etcd3.Store
	cachers []*cacher.Cacher
}

// uncached are the resources that are served straight from etcd. Upstream keeps no cache of events either: they are
// written all the time and hardly ever read.
var uncached = map[string]bool{"events": true}

// NewServer wires the server half. Nothing runs, and etcd hears nothing, until [Server.Run].
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).CompleteWithOptions
func NewServer(config ServerConfig) (*Server, error) {
	s := &Server{
		config:    config,
		stored:    map[string]registry.Config{},
		compactor: etcd3.NewCompactor(config.Client, config.Clock, etcd3.DefaultCompactInterval),
		registry:  prometheus.NewRegistry(),
		shutdown:  make(chan struct{}),
		prepared:  make(chan struct{}),
		stopped:   make(chan struct{}),
		late:      make(chan *onDemand, len(registry.Resources())),
	}
	s.prepare = sync.OnceFunc(func() { close(s.prepared) })
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(
		collectors.ProcessCollectorOpts{}))
	for _, resource := range registry.Resources() {
		stored, err := s.storageOf(resource, config.Probe)
		if err != nil {
			return nil, fmt.Errorf("wire %s: %w", resource.Name, err)
		}
		s.stored[resource.GroupResource().String()] = registry.Config{Resource: resource, Storage: stored,
			Clock: config.Clock, Probe: config.Probe.Resource(resource.Called)}
	}
	s.namespaces = registry.New(s.stored["namespaces"])
	rest := map[string]handlers.Storage{}
	for _, c := range s.stored {
		c.Namespaces = s.namespaces
		maps.Copy(rest, handlers.Storages(c))
	}
	s.api = apiserver.New(apiserver.Config{
		Config: handlers.Config{
			Storage: rest, Clock: config.Clock, Patience: config.Patience, Probe: config.Probe,
			Shutdown: s.shutdown,
		},
		Ready: s.Ready, EtcdReady: config.EtcdReady, Registry: s.registry,
	})
	custom, err := newDefinitions(s)
	s.custom = custom
	return s, err
}

// storageOf returns what a resource is read from and written to: its etcd3 store, which reports
// to p, behind a cache unless it is to have none.
//
// Upstream: k8s.io/apiserver/pkg/server/options/etcd.go: (*StorageFactoryRestOptionsFactory).GetRESTOptions
func (s *Server) storageOf(resource *registry.Resource,
	p *probe.Probe) (storage.Interface, error) {
	mediaType := cmp.Or(s.config.MediaType, etcd3.MediaTypeProtobuf)
	codec, err := etcd3.NewCodec(scheme.Codecs, resource.GroupVersion, mediaType)
	if err != nil {
		return nil, err
	}
	if resource.Custom != nil {
		codec = resource.Custom.Codec(codec)
	}
	raw, err := etcd3.New(etcd3.Config{
		Client: s.config.Client, Codec: codec, NewFunc: resource.NewFunc,
		ResourcePrefix: resource.Prefix, TTL: resource.TTL, Watcher: s.config.EtcdWatcher,
		Clock: s.config.Clock, Probe: p.Resource(resource.Called),
	})
	if err != nil {
		return nil, err
	}
	if uncached[resource.Called] {
		if resource.GroupVersion.Group == "" { // the other events are the same
			s.stores = append(s.stores, raw)
		}
		return raw, nil
	}
	if resource.OnDemand {
		return newOnDemand(s, resource, raw), nil
	}
	cached, delegator, err := s.cache(resource, raw)
	s.started = append(s.started, cached)
	return delegator, err
}

// cache puts a cache in front of raw. Run has yet to run it.
func (s *Server) cache(resource *registry.Resource, raw *etcd3.Store) (*cacher.Cacher, storage.Interface, error) {
	config, cacherConfig := &s.config, resource.CacherConfig()
	cacherConfig.Clock, cacherConfig.Patience = config.Clock, config.Patience
	cacherConfig.Probe = config.Probe.Resource(resource.Called)
	cacherConfig.Registry, cacherConfig.Compaction = s.registry, s.compactor
	if custom := resource.Custom; custom != nil {
		cacherConfig.WatcherIDs = &s.watchers
		if custom.Sibling {
			cacherConfig.Registry = nil
		}
	}
	cacherConfig.RingCapacity, cacherConfig.Dispatch, cacherConfig.UseWatchList = config.RingCapacity, config.Dispatch,
		config.UseWatchList
	cached, delegator, err := registry.StorageWithCacher(raw, cacherConfig)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores, s.cachers = append(s.stores, raw), append(s.cachers, cached)
	return cached, delegator, nil
}

// forget drops a cache that has ended.
func (s *Server) forget(o *onDemand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cachers = slices.DeleteFunc(s.cachers, func(each *cacher.Cacher) bool { return each == o.cacher })
	s.stores = slices.DeleteFunc(s.stores, func(each *etcd3.Store) bool { return each == o.Store })
}

// Resource returns the resource that is watched and that the log calls so, of several the first by group; nil if none
// is served now.
func (s *Server) Resource(called string) *registry.Resource {
	for _, scope := range s.api.Scopes() {
		if _, watched := scope.Storage.(handlers.Watcher); watched && scope.Resource.Called == called {
			return scope.Resource
		}
	}
	return nil
}

// Storage returns what a resource is read from and written to below the registry; nil if there is no such resource.
func (s *Server) Storage(resource string) storage.Interface { return s.stored[resource].Storage }

// Pods returns what the handlers of pods read from and write to.
func (s *Server) Pods() *registry.Store { return registry.New(s.stored["pods"]) }

// Cachers returns the cache of every resource that has one now. Those on demand come last, in the order of their
// beginnings.
func (s *Server) Cachers() []*cacher.Cacher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.cachers)
}

// Compact makes etcd forget all history up to now, and returns the revision that is kept.
func (s *Server) Compact(ctx context.Context) (rev int64, err error) {
	return s.compactor.CompactNow(ctx)
}

// Handler returns the Kubernetes API, /metrics and the health endpoints.
func (s *Server) Handler() http.Handler { return s.api }

// Registry returns what is shown at /metrics. Others of the same process may add to it.
func (s *Server) Registry() *prometheus.Registry { return s.registry }

// EndStreams ends every open watch and lets it say that the server shuts down. A client that comes back before the
// front has ended is told to wait, with 429. It is called once, before the front ends: from then on a stream that loses
// its connection could not tell whose end it was.
func (s *Server) EndStreams() { close(s.shutdown) }

// Run keeps the caches filled until ctx is done, and returns when all their goroutines have ended. It is called once.
func (s *Server) Run(ctx context.Context) {
	var group routine.Group
	group.Go(ctx, "compactor", s.compactor.Run)
	group.Go(ctx, "postStart", s.postStart)
	for _, each := range s.started {
		group.Go(ctx, "cacher", each.Run)
	}
	for ctx.Err() == nil {
		select {
		case each := <-s.late:
			group.Go(ctx, "cacher.onDemand", each.run)
		case <-ctx.Done():
		}
	}
	group.Wait()
}

// Ready returns nil once every cache that begins with the server holds its first state, the namespaces are there that
// must be, and custom resources are served.
func (s *Server) Ready() error {
	for _, each := range s.started {
		if !each.Ready() {
			return fmt.Errorf("the watch cache of %s is not initialized", each.Snapshot().Resource)
		}
	}
	select {
	case <-s.prepared:
		return nil
	default:
		return errors.New("the system's namespaces are not created yet, or custom resources not served")
	}
}

// WaitReady returns when Ready would return nil. The error is ctx's, or that the server has stopped.
func (s *Server) WaitReady(ctx context.Context) error {
	for _, each := range s.started {
		if err := each.Wait(ctx); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.prepared:
		return nil
	case <-s.stopped:
		return s.Ready()
	}
}

// ServerSnapshot is the state of the server half, by resource.
type ServerSnapshot struct {
	Cachers []cacher.Snapshot `json:"cachers"`
	Stores  []etcd3.Snapshot  `json:"stores"`
}

// Snapshot returns the state of every store and cache.
func (s *Server) Snapshot() ServerSnapshot {
	var snapshot ServerSnapshot
	s.mu.Lock()
	cachers, stores := slices.Clone(s.cachers), slices.Clone(s.stores)
	s.mu.Unlock()
	for _, each := range cachers {
		snapshot.Cachers = append(snapshot.Cachers, each.Snapshot())
	}
	for _, each := range stores {
		snapshot.Stores = append(snapshot.Stores, each.Snapshot())
	}
	return snapshot
}

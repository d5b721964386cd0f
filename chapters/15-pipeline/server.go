package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	cacher "listwatch/chapters/06-cacher"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// ServerConfig says what the server half is made of. Client, Clock and Handler are required.
type ServerConfig struct {
	Client etcd3.Client
	Clock  clock.WithTicker
	// by which reads wait for a fresh cache, and handlers for a client's socket; nil: Clock
	Patience     clock.WithTicker
	Probe        *probe.Probe // nil: off
	MediaType    string       // in which objects are stored; "": protobuf
	EtcdWatcher  string       // [etcd3.WatcherEtcd3] or [etcd3.WatcherEtcd2]; "": the former
	Dispatch     string       // [cacher.TwoPhase] or [cacher.Sequential]; "": the former
	RingCapacity int          // of every cache; 0: dynamic
	UseWatchList bool         // caches get their first state as a stream

	// Handler makes the handler of the whole API out of what this half serves. An API server has more than lists and
	// watches, such as discovery, patches and metrics: that is not part of the path, and is brought along. The function
	// is called once, by [NewServer]. It may add to metrics. ready is [Server.Ready].
	Handler func(served handlers.Config, metrics *prometheus.Registry, ready func() error) http.Handler
}

// Server is the server half: a stack for each kind, and before them all the handlers.
type Server struct {
	// Set by NewServer, never changed.
	config     ServerConfig
	stacks     []*stack // in the order of [registry.Resources]
	namespaces *registry.Store
	compactor  *etcd3.Compactor
	metrics    *prometheus.Registry // of everything that is shown at /metrics
	handler    http.Handler
	shutdown   chan struct{} // closed by EndStreams, never sent on
	prepared   atomic.Bool   // set by postStart when the namespaces are there
	started    chan struct{} // closed when postStart returns, never sent on
}

// NewServer wires the server half. Nothing runs, and no request is sent to etcd, until [Server.Run].
func NewServer(config ServerConfig) (*Server, error) {
	s := &Server{
		config: config,
		compactor: etcd3.NewCompactor(config.Client, config.Clock,
			etcd3.DefaultCompactInterval),
		metrics:  prometheus.NewRegistry(),
		shutdown: make(chan struct{}),
		started:  make(chan struct{}),
	}
	for _, resource := range registry.Resources() {
		built, err := s.build(resource)
		if err != nil {
			return nil, fmt.Errorf("wire %s: %w", resource.Name, err)
		}
		s.stacks = append(s.stacks, built)
	}
	s.namespaces = registry.New(s.stackOf("namespaces").registry)
	served := map[string]handlers.Storage{}
	for _, each := range s.stacks {
		each.registry.Namespaces = s.namespaces
		maps.Copy(served, handlers.Storages(each.registry))
	}
	s.handler = config.Handler(handlers.Config{
		Storage: served, Clock: config.Clock, Patience: config.Patience, Probe: config.Probe, Shutdown: s.shutdown,
	}, s.metrics, s.Ready)
	return s, nil
}

// Handler returns the Kubernetes API, /metrics and the health endpoints.
func (s *Server) Handler() http.Handler { return s.handler }

// Registry returns what is shown at /metrics. Others of the same process may add to it.
func (s *Server) Registry() *prometheus.Registry { return s.metrics }

// Run keeps the caches filled until ctx is done, and returns when all their goroutines have
// ended. It is called once.
func (s *Server) Run(ctx context.Context) {
	var group routine.Group
	group.Go(ctx, "compactor", s.compactor.Run)
	for _, each := range s.Cachers() {
		group.Go(ctx, "cacher", each.Run)
	}
	group.Go(ctx, "postStart", s.postStart)
	group.Wait()
}

// EndStreams ends every open watch and lets it say that the server shuts down. A client that comes back before the
// front has ended is told to wait, with 429. It is called once, before the front ends: from then on a stream that loses
// its connection could not tell whose end it was.
func (s *Server) EndStreams() { close(s.shutdown) }

// Ready returns nil once every cache holds its first state, and the namespaces are there that must be.
func (s *Server) Ready() error {
	for _, each := range s.Cachers() {
		if !each.Ready() {
			return fmt.Errorf("the watch cache of %s is not initialized", each.Resource())
		}
	}
	if !s.prepared.Load() {
		return errors.New("the system's namespaces are not created yet")
	}
	return nil
}

// WaitReady returns when Ready would return nil. The error is ctx's, or that the server has stopped.
func (s *Server) WaitReady(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.started:
	}
	for _, each := range s.Cachers() { // one may have lost its watch since
		if err := each.Wait(ctx); err != nil {
			return err
		}
	}
	return s.Ready()
}

// stackOf returns the stack of a resource, of events that of core/v1, or an empty one if there is none.
func (s *Server) stackOf(resource string) *stack {
	for _, each := range s.stacks {
		if each.resource.Name == resource {
			return each
		}
	}
	return &stack{}
}

// Resource returns what is known about a resource; nil if it is not served.
func (s *Server) Resource(name string) *registry.Resource { return s.stackOf(name).resource }

// Storage returns what a resource, which must be served, is read from and written to below the registry.
func (s *Server) Storage(resource string) storage.Interface { return s.stackOf(resource).storage }

// Cacher returns the cache of a resource, or nil if there is none.
func (s *Server) Cacher(resource string) *cacher.Cacher { return s.stackOf(resource).cacher }

// Pods returns what the handlers of pods read from and write to.
func (s *Server) Pods() *registry.Store { return registry.New(s.stackOf("pods").registry) }

// Cachers returns the cache of every resource that has one.
func (s *Server) Cachers() (cachers []*cacher.Cacher) {
	for _, each := range s.stacks {
		if each.cacher != nil {
			cachers = append(cachers, each.cacher)
		}
	}
	return cachers
}

// Compact makes etcd forget all history up to now, and returns the revision that is kept.
func (s *Server) Compact(ctx context.Context) (rev int64, err error) {
	return s.compactor.CompactNow(ctx)
}

// systemRetry is the time between two attempts to create the system's namespaces.
const systemRetry = time.Second

// postStart creates the namespaces that clients count on: without them, a client could create nothing that does not
// name its namespace. It begins when the caches are filled, so that they are filled with what was there before us. It
// ends when the namespaces are there, or ctx is done.
//
// Upstream: k8s.io/apiserver/pkg/server/hooks.go: (*GenericAPIServer).AddPostStartHook
// Differs: looks at the namespaces once; upstream's controller looks every minute. They cannot be deleted.
func (s *Server) postStart(ctx context.Context) {
	defer close(s.started)
	for _, each := range s.Cachers() {
		if each.Wait(ctx) != nil {
			return
		}
	}
	for s.createNamespaces(ctx) != nil {
		if routine.Sleep(ctx, s.config.Clock, systemRetry) != nil {
			return
		}
	}
	s.prepared.Store(true)
}

func (s *Server) createNamespaces(ctx context.Context) error {
	for _, name := range registry.SystemNamespaces {
		// An etcd that is full takes no write, and has them already.
		_, err := s.namespaces.Get(ctx, "", name, &metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err = s.namespaces.Create(ctx, "", namespace, &metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// ServerSnapshot is the state of the server half, by resource.
type ServerSnapshot struct {
	Cachers []cacher.Snapshot `json:"cachers"`
	Stores  []etcd3.Snapshot  `json:"stores"`
}

// Snapshot returns the state of every store and cache.
func (s *Server) Snapshot() ServerSnapshot {
	var snapshot ServerSnapshot
	for _, each := range s.Cachers() {
		snapshot.Cachers = append(snapshot.Cachers, each.Snapshot())
	}
	for _, each := range s.stacks {
		if each == s.stackOf(each.resource.Name) { // events of events.k8s.io are those of core/v1
			snapshot.Stores = append(snapshot.Stores, each.store.Snapshot())
		}
	}
	return snapshot
}

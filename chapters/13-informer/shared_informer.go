package informer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
)

// SharedIndexInformer keeps a local copy of the objects of one type and tells any number of
// handlers how it changes.
//
// At the server, the object of one key goes through a strict sequence of states, each either
// present, with a resource version, or absent. The UID is not part of the key: an object that
// was deleted and one that was made again under its name are states of one sequence. In these
// terms the informer promises:
//
//   - Convergence. If the server ever holds a state of a key, the store in the end holds that
//     state or a later one, unless the informer is stopped, the server cannot be reached for
//     good, or etcd is restored from a backup.
//   - Order. The states of a key that the store goes through are a subsequence of those at the
//     server: some may never appear; those that do, appear in order, unless etcd is restored
//     from a backup. Upstream promises nothing between keys; with [FIFOReal] and an unbroken
//     watch, the store as a whole goes through a subsequence of the server's states, too.
//   - One state per query. Every read of the store is answered from one state of it.
//   - Store first. When a handler is told of a state, the store held it before, and now holds
//     it or a later one, which includes that the object is gone, unless etcd is restored from a
//     backup.
//   - Every change is told. A handler that was added before Run is told of every change of the
//     store. One that is added later is told, as OnAdd, of what the store holds then, and after
//     that of every change: nothing is missing and nothing is double.
//   - Order of calls. A handler is called once at a time, in the order in which the store
//     changed: OnAdd, any number of OnUpdate, OnDelete, and again from the start. The old state
//     of an OnUpdate is the one told before. Between handlers there is no order, and none waits
//     for another.
//
// Four things surprise:
//
//   - OnUpdate with two equal states happens, on a resync and on a relist: for the handlers
//     that are due, or for all if the informer has no resyncs. A resync never asks the server.
//   - OnUpdate may join two objects: one that was deleted and one that was made again while the
//     watch was broken. Compare the UIDs if it matters.
//   - OnDelete may come for an object that no handler was told of, with [FIFOReal], if that is
//     what the watch says. A deletion that only a list has shown is told with a
//     [deltafifo.DeletedFinalStateUnknown], whose object may be old.
//   - Objects are shared by the store and all handlers: no reader may write to them.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: sharedIndexInformer
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: SharedIndexInformer
// Differs: the type itself; upstream has an interface of this name and one implementation, and
// methods that set what is in [Config] before the start.
type SharedIndexInformer struct {
	// Set by NewSharedIndexInformer, never changed.
	config    Config
	indexer   *indexer.Indexer
	processor *processor.SharedProcessor
	queue     deltafifo.Queue
	deltas    *deltaProcessor // used under deltasMu

	controller atomic.Pointer[Controller] // set once, when the informer is started

	startedMu         sync.Mutex // guards the fields below; taken before deltasMu
	resyncCheckPeriod time.Duration
	started, stopped  bool

	// deltasMu is upstream's blockDeltas. A goroutine that holds it may read the store and add
	// a listener as one step. Taken before the locks of chapters 11 and 12; no handler runs
	// under it.
	deltasMu sync.Mutex
}

// NewSharedIndexInformer returns an informer that does nothing until [SharedIndexInformer.Run].
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: NewSharedIndexInformerWithOptions
func NewSharedIndexInformer(cfg Config) *SharedIndexInformer {
	if cfg.Name == "" {
		cfg.Name = fmt.Sprintf("SharedIndexInformer %T", cfg.ExampleObject)
	}
	s := &SharedIndexInformer{
		config: cfg,
		indexer: indexer.NewIndexer(indexer.Config{
			Indexers:  cfg.Indexers,
			Probe:     cfg.Probe,
			Unordered: cfg.FIFO == FIFODelta,
		}),
		processor:         processor.New(cfg.Clock, cfg.Probe),
		resyncCheckPeriod: cfg.ResyncPeriod,
	}
	s.queue = s.newQueue()
	s.deltas = &deltaProcessor{clientState: s.indexer, handler: s.processor}
	return s
}

// Run keeps the store up to date and tells the handlers until ctx is done, and returns when
// everything has ended, the last call of a handler included; what still waits for a handler is
// dropped. It does nothing if the informer was run before.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).RunWithContext
func (s *SharedIndexInformer) Run(ctx context.Context) {
	controller := s.start()
	if controller == nil {
		return
	}
	controller.Run(ctx)
	s.stop()
	s.processor.Stop() // the listeners outlive the controller, which sends to them
}

// start builds the controller and starts the handlers' goroutines. It returns nil if that was done before.
func (s *SharedIndexInformer) start() *Controller {
	s.startedMu.Lock()
	defer s.startedMu.Unlock()
	if s.started {
		return nil
	}
	s.started = true
	controller := NewController(s.queue, reflector.Config{
		Name:              s.config.Name,
		ListerWatcher:     s.config.ListerWatcher,
		ExpectedType:      s.config.ExampleObject,
		Clock:             s.config.Clock,
		Probe:             s.config.Probe,
		ResyncPeriod:      s.resyncCheckPeriod,
		ShouldResync:      s.processor.ShouldResync,
		UseWatchList:      s.config.UseWatchList,
		WatchErrorHandler: s.config.WatchErrorHandler,
		Jitter:            s.config.Jitter,
	}, s.handleDeltas, s.handleBatchDeltas)
	s.controller.Store(controller)
	s.processor.Start()
	return controller
}

// Upstream: k8s.io/client-go/tools/cache/controller.go: newQueueFIFO
func (s *SharedIndexInformer) newQueue() deltafifo.Queue {
	if s.config.FIFO == FIFODelta {
		return deltafifo.NewDeltaFIFO(s.indexer, s.config.Transform, s.config.Probe)
	}
	return deltafifo.NewRealFIFO(s.config.Transform, s.config.Probe)
}

// stop refuses handlers from here on: the processor is about to stop.
func (s *SharedIndexInformer) stop() {
	s.startedMu.Lock()
	defer s.startedMu.Unlock()
	s.stopped = true
}

// handleDeltas is the controller's Process.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).handleDeltas
func (s *SharedIndexInformer) handleDeltas(deltas deltafifo.Deltas, isInInitialList bool) error {
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	return s.deltas.processDeltas(deltas, isInInitialList)
}

// handleBatchDeltas is the controller's ProcessBatch.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).handleBatchDeltas
func (s *SharedIndexInformer) handleBatchDeltas(deltas deltafifo.Deltas, isInInitialList bool) error {
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	return s.deltas.processDeltasInBatch(deltas, isInInitialList)
}

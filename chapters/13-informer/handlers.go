package informer

import (
	"fmt"
	"time"

	processor "listwatch/chapters/12-processor"
)

// minimumResyncPeriod is the shortest resync period a handler can ask for. A resync shows it every object there is.
const minimumResyncPeriod = time.Second

// HandlerOptions describes a handler.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: HandlerOptions
type HandlerOptions struct {
	// Name is what probes, snapshots and waiting call it; default "l1", "l2", … It must be unique.
	Name string
	// ResyncPeriod is how often the handler gets all objects again, at least a second; 0: never, nil: the informer's
	// period. In a running informer it is at least the period at which the informer checks.
	ResyncPeriod *time.Duration
	// Quiet keeps the handler out of probes and snapshots.
	Quiet bool
}

// AddEventHandler adds a handler with the informer's resync period. It fails as AddEventHandlerWithOptions does.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).AddEventHandler
func (s *SharedIndexInformer) AddEventHandler(handler processor.ResourceEventHandler) (processor.Registration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{})
}

// AddEventHandlerWithOptions adds a handler, before the informer is run or while it runs; after
// its end, this is an error. A late handler first gets OnAdd for each object of the store, in
// any order, with isInInitialList. The call waits for the batch being processed, holds up the
// next, and waits for no handler.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).AddEventHandlerWithOptions
func (s *SharedIndexInformer) AddEventHandlerWithOptions(handler processor.ResourceEventHandler,
	opts HandlerOptions) (processor.Registration, error) {
	s.startedMu.Lock()
	defer s.startedMu.Unlock()
	if s.stopped {
		return nil, fmt.Errorf("add handler to %s: the informer has stopped", s.config.Name)
	}
	period := s.negotiateResyncLocked(opts.ResyncPeriod)
	// From here until the listener is added the store stands still: what it holds now and what
	// is distributed from then on is everything, once.
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	return s.processor.AddListener(handler, processor.ListenerOptions{
		Name:                  opts.Name,
		Quiet:                 opts.Quiet,
		RequestedResyncPeriod: period,
		ResyncCheckPeriod:     s.resyncCheckPeriod,
		UpstreamHasSynced:     s.HasSyncedChecker(),
		Initial:               s.indexer.List(),
	})
}

// negotiateResyncLocked returns the resync period a handler is taken to ask for. Before the
// start, a handler that asks for more resyncs than the informer checks for makes it check more
// often; after it, the handler gets the informer's period. It expects startedMu.
func (s *SharedIndexInformer) negotiateResyncLocked(requested *time.Duration) time.Duration {
	period := s.config.ResyncPeriod
	if requested != nil {
		period = *requested
	}
	if period <= 0 {
		return 0
	}
	period = max(period, minimumResyncPeriod)
	if period >= s.resyncCheckPeriod {
		return period
	}
	if s.started {
		return s.resyncCheckPeriod
	}
	s.resyncCheckPeriod = period
	s.processor.ResyncCheckPeriodChanged(period)
	return period
}

// RemoveEventHandler removes a handler. It may be called from the handler itself and does not wait for a call: when it
// has returned, at most one more call begins, see [processor.SharedProcessor.RemoveListener]. To remove a handler twice
// does nothing. It fails only for a registration of another kind.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).RemoveEventHandler
// Differs: has no ShutDownEventHandler. To wait for the last call, receive from the registration's ShutdownChan.
func (s *SharedIndexInformer) RemoveEventHandler(registration processor.Registration) error {
	s.startedMu.Lock()
	defer s.startedMu.Unlock()
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	return s.processor.RemoveListener(registration)
}

package processor

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// SharedProcessor is a [ResourceEventHandler] that hands every notification to all listeners,
// and notifications that changed nothing only to those that are due for a resync; while resyncs
// are off, to all.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: sharedProcessor
// Differs: listeners are told in the order in which they were added; upstream keeps them in a
// Go map.
// Differs: Start returns when the listeners run, before the first notification; upstream starts
// them at the same time as the controller, and distribute waits for them.
type SharedProcessor struct {
	// Set by New, never changed.
	clock clock.WithTicker
	probe *probe.Probe

	goroutines routine.Group // run of every listener

	mu        sync.RWMutex         // guards the fields below, and some of processorListener
	listeners []*processorListener // in order of arrival; replaced, never changed in place
	lastID    int
	started   bool
	stopped   bool

	shown atomic.Pointer[[]*processorListener] // listeners, for Snapshot, which does not wait
}

// New returns a processor without listeners.
func New(clk clock.WithTicker, p *probe.Probe) *SharedProcessor {
	processor := &SharedProcessor{clock: clk, probe: p}
	processor.setListenersLocked(nil) // no other goroutine knows it yet
	return processor
}

// Start starts the goroutines of the listeners there are. Notifications may be distributed from here on.
func (p *SharedProcessor) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = true
	for _, listener := range p.listeners {
		listener.start(&p.goroutines)
		listener.startWatchSynced()
	}
}

// Stop ends all listeners and returns when their goroutines have ended. What waits for a handler is dropped; a handler
// that is running is waited for. Nothing may be distributed any more.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedProcessor).run
func (p *SharedProcessor) Stop() {
	p.closeAll()
	p.goroutines.Wait()
}

func (p *SharedProcessor) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, listener := range p.listeners {
		p.closeLocked(listener)
	}
	p.setListenersLocked(nil)
	p.stopped = true
}

// closeLocked tells listener to end. mu is held for writing, so that no goroutine is sending to it.
func (p *SharedProcessor) closeLocked(listener *processorListener) {
	listener.removed.Store(true)
	if p.started {
		close(listener.addCh)
	} else {
		listener.finish() // there is nothing that could end
	}
}

func (p *SharedProcessor) setListenersLocked(listeners []*processorListener) {
	p.listeners = listeners
	p.shown.Store(&listeners)
}

// ListenerOptions describes a listener.
type ListenerOptions struct {
	Name  string // unique among the listeners; default "l1", "l2", …
	Quiet bool   // it is in no probe and no snapshot
	// RequestedResyncPeriod is how often the handler wants to be shown everything again, 0 for never.
	RequestedResyncPeriod time.Duration
	// ResyncCheckPeriod is how often it can be, 0 for never.
	ResyncCheckPeriod time.Duration
	// UpstreamHasSynced is closed when the informer has distributed its initial list.
	UpstreamHasSynced <-chan struct{}
	// Initial are the objects of the store, of which the listener is notified first.
	Initial []any
}

// AddListener adds a handler. It will be told of everything in opts.Initial and of everything
// distributed after the call. For nothing to be missing or double in between, the caller must
// see to it that the store does not change from the moment opts.Initial was read until
// AddListener returns. It is an error after Stop, and if there is a listener of that name.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedProcessor).addListener
func (p *SharedProcessor) AddListener(handler ResourceEventHandler,
	opts ListenerOptions) (Registration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, fmt.Errorf("add handler %T: the processor has stopped", handler)
	}
	if opts.Name == "" {
		p.lastID++
		opts.Name = "l" + strconv.Itoa(p.lastID)
	}
	for _, other := range p.listeners {
		if other.id == opts.Name {
			return nil, fmt.Errorf("add handler %T: there is a listener %q", handler, opts.Name)
		}
	}
	listener := newProcessorListener(handler, opts, p.clock, p.probe)
	p.setListenersLocked(append(slices.Clip(p.listeners), listener))
	listener.probe.Text(probe.ListenerAdded, p.probe.ID(), "", 0)
	if !p.started {
		return listener, nil
	}
	listener.start(&p.goroutines)
	for _, obj := range opts.Initial {
		listener.add(p.identified(notification{typ: added, obj: obj, isInInitialList: true}))
	}
	// Only now: had watchSynced found the informer synced before the first add, the listener
	// would count as synced.
	listener.startWatchSynced()
	return listener, nil
}

// RemoveListener removes a listener. It does not wait for a call of the handler that has begun,
// and run may be about to begin one: when RemoveListener has returned, at most one more call
// begins. [Registration.ShutdownChan] says when none will. To remove a listener twice, or one
// of another processor, does nothing; the error is for a registration of another kind.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedProcessor).removeListener
func (p *SharedProcessor) RemoveListener(registration Registration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	listener, ok := registration.(*processorListener)
	if !ok {
		return fmt.Errorf("remove handler: %T is no registration of ours", registration)
	}
	i := slices.Index(p.listeners, listener)
	if i < 0 {
		return nil
	}
	p.setListenersLocked(slices.Delete(slices.Clone(p.listeners), i, i+1))
	p.closeLocked(listener)
	return nil
}

// OnAdd tells all listeners of a new object, which they share and must not change. It waits for no handler.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).OnAdd
func (p *SharedProcessor) OnAdd(obj any, isInInitialList bool) {
	p.distribute(notification{typ: added, obj: obj, isInInitialList: isInInitialList}, false)
}

// OnUpdate tells all listeners of a new state, or only the syncing ones if it is the old one.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).OnUpdate
func (p *SharedProcessor) OnUpdate(old, obj any) {
	p.distribute(notification{typ: modified, old: old, obj: obj}, sameVersion(old, obj))
}

// OnDelete tells all listeners of a deletion.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedIndexInformer).OnDelete
func (p *SharedProcessor) OnDelete(obj any) {
	p.distribute(notification{typ: deleted, obj: obj}, false)
}

// sameVersion says that an update changes nothing: a resync, or an object that a relist found as it was.
func sameVersion(old, obj any) bool {
	oldMeta, err := meta.Accessor(old)
	if err != nil {
		return false
	}
	objMeta, err := meta.Accessor(obj)
	return err == nil && oldMeta.GetResourceVersion() == objMeta.GetResourceVersion()
}

// distribute hands n to every listener; with sync, which says that n changes nothing, only to
// those that are syncing. It waits for each listener's pop, which soon receives, and never for
// a handler.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedProcessor).distribute
func (p *SharedProcessor) distribute(n notification, sync bool) {
	shared := p.identified(n)
	handed := p.handAround(shared, sync)
	p.probe.Event(probe.Distributed, shared.typ, shared.key, shared.rv, handed)
}

// handAround returns how many listeners it has handed n to. It takes and releases mu: while a
// goroutine is sending, no listener's addCh is closed.
func (p *SharedProcessor) handAround(n *notification, sync bool) (handed int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, listener := range p.listeners {
		if sync && !listener.syncing {
			continue
		}
		listener.add(n)
		if !listener.quiet {
			handed++
		}
	}
	return handed
}

// identified returns n for all listeners to share, with what the probes will say about it.
func (p *SharedProcessor) identified(n notification) *notification {
	if p.probe != nil {
		n.key, _ = deltafifo.DeletionHandlingMetaNamespaceKeyFunc(n.obj)
		n.rv = deltafifo.VersionOf(n.obj)
	}
	return &n
}

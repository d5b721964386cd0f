package processor

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/buffer"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// The types of a notification: one per method of [ResourceEventHandler].
const (
	added    = string(watch.Added)
	modified = string(watch.Modified)
	deleted  = string(watch.Deleted)
)

// notification is what a handler is called with. All listeners share it; nothing changes it.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: addNotification
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: updateNotification
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: deleteNotification
// Differs: one type for the three.
type notification struct {
	typ             string // added, modified or deleted
	old             any    // for modified only
	obj             any    // for deleted, maybe a [deltafifo.DeletedFinalStateUnknown]
	isInInitialList bool

	// For probes only, and not set without them.
	key string
	rv  uint64
}

// initialBufferSize is how many notifications the pending ring of a listener holds before it grows for the first time,
// and from how many on its handler is watched for slowness.
const initialBufferSize = 1024

// slowHandler is the duration above which a call is counted as slow, if more than initialBufferSize notifications wait.
const slowHandler = 100 * time.Millisecond

// processorListener brings notifications to one handler, through two unbuffered channels and a
// ring without a limit:
//
//	distribute ──addCh──► pop ──nextCh──► run ──► handler
//	                      │ ▲
//	                      ▼ │
//	                 pending ring
//
// The ring is the one place in Kubernetes' own code on the path that accepts without
// backpressure: behind a handler that hangs it grows until the process has no memory left. It
// has to be somewhere: one slow handler must not stop the others, and the events of different
// handlers come from one stream.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: processorListener
// Differs: a panic of the handler ends the program. Upstream can be told to skip the
// notification and go on.
// Differs: no call begins once the listener is removed. Upstream's pop may hand on what is in
// its hand, and more, because its select chooses at random between run and the closed addCh.
type processorListener struct {
	// Set by newProcessorListener, never changed.
	id                string
	quiet             bool
	handler           ResourceEventHandler
	clock             clock.WithTicker
	probe             *probe.Probe
	syncTracker       *SingleFileTracker
	upstreamHasSynced <-chan struct{}

	// sent by distribute, closed by RemoveListener or Stop; unbuffered: pop is always there
	addCh       chan *notification
	nextCh      chan *notification // sent and closed by pop; unbuffered: the ring waits
	done        chan struct{}      // closed by pop, for watchSynced; nothing is sent
	runFinished chan struct{}      // closed by finish; nothing is sent
	others      routine.Group      // pop and watchSynced

	removed atomic.Bool // set before addCh is closed; from then on run makes no call

	// Owned by pop.
	pending *buffer.TypedRingGrowing[*notification]

	// Written by pop and run, read by snapshot.
	pendingLen, pendingCap, slowCalls atomic.Int64

	// Guarded by SharedProcessor.mu.
	// whether updates that change nothing are for this listener, see
	// [SharedProcessor.ShouldResync]
	syncing               bool
	requestedResyncPeriod time.Duration
	resyncPeriod          time.Duration // requested and granted; 0 for none
	nextResync            time.Time
}

func newProcessorListener(handler ResourceEventHandler, opts ListenerOptions, clk clock.WithTicker,
	p *probe.Probe) *processorListener {
	if opts.Quiet {
		p = nil
	}
	l := &processorListener{
		id:                opts.Name,
		quiet:             opts.Quiet,
		handler:           handler,
		clock:             clk,
		probe:             p.Subject(opts.Name),
		syncTracker:       newSingleFileTracker(),
		upstreamHasSynced: opts.UpstreamHasSynced,
		addCh:             make(chan *notification),
		nextCh:            make(chan *notification),
		done:              make(chan struct{}),
		runFinished:       make(chan struct{}),
		pending: buffer.NewTypedRingGrowing[*notification](buffer.RingGrowingOptions{
			InitialSize: initialBufferSize}),
		// A listener counts as syncing until a resync says otherwise. Without resyncs that is forever, and so a relist
		// shows every listener every object, changed or not.
		syncing:               true,
		requestedResyncPeriod: opts.RequestedResyncPeriod,
		resyncPeriod:          determineResyncPeriod(opts.RequestedResyncPeriod, opts.ResyncCheckPeriod),
	}
	l.pendingCap.Store(initialBufferSize)
	l.nextResync = clk.Now().Add(l.resyncPeriod)
	return l
}

// start starts run in group, and pop. They belong to no context: they end when addCh is closed.
func (l *processorListener) start(group *routine.Group) {
	l.others.Go(context.Background(), "processorListener.pop", l.pop)
	group.Go(context.Background(), "processorListener.run", l.run)
}

func (l *processorListener) startWatchSynced() {
	l.others.Go(context.Background(), "processorListener.watchSynced", l.watchSynced)
}

// add hands n to pop. An object of the initial list is counted first: once pop has it, run may have it, too.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*processorListener).add
func (l *processorListener) add(n *notification) {
	if n.isInInitialList {
		l.syncTracker.Start()
	}
	select {
	case l.addCh <- n:
	default:
		l.probe.Event(probe.AddBlocked, n.typ, n.key, n.rv)
		l.addCh <- n
	}
}

// pop runs until addCh is closed, and then drops what waits.
//
// At any time it holds one notification in hand, or none. With one in hand it offers it to run,
// and puts what comes in meanwhile into the ring. With none in hand it only takes.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*processorListener).pop
func (l *processorListener) pop(context.Context) {
	defer close(l.nextCh) // ends run
	defer close(l.done)   // ends watchSynced
	var inHand *notification
	// A send to a nil channel is never ready: nextCh is nil as long as there is nothing to
	// send, which takes the first case out of the select.
	var nextCh chan<- *notification
	for {
		select {
		case nextCh <- inHand:
			inHand = l.readPending()
			if inHand == nil {
				nextCh = nil
			}
		case n, ok := <-l.addCh:
			if !ok {
				return
			}
			if inHand == nil {
				inHand = n // without the detour through the ring, which is empty
				nextCh = l.nextCh
				l.probe.Event(probe.AddReceived, n.typ, n.key, n.rv)
			} else {
				l.writePending(n)
			}
		}
	}
}

// writePending puts n at the end of the ring. Only pop calls it.
func (l *processorListener) writePending(n *notification) {
	l.pending.WriteOne(n)
	l.pendingLen.Store(int64(l.pending.Len()))
	l.pendingCap.Store(int64(l.pending.Cap()))
	l.probe.Event(probe.PendingPushed, n.typ, n.key, n.rv, l.pending.Len(), l.pending.Cap())
}

// readPending takes the oldest out of the ring, nil if there is none. Only pop calls it.
func (l *processorListener) readPending() *notification {
	n, ok := l.pending.ReadOne()
	if !ok {
		return nil
	}
	l.pendingLen.Store(int64(l.pending.Len()))
	l.probe.Event(probe.PendingPopped, n.typ, n.key, n.rv, l.pending.Len(), l.pending.Cap())
	return n
}

// run calls the handler until the listener is removed or nextCh is closed. It is the last of
// the listener's goroutines to end.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*processorListener).run
func (l *processorListener) run(context.Context) {
	for n := range l.nextCh {
		if l.removed.Load() {
			break // pop ends without run: it also receives from addCh, which is closed
		}
		l.call(n)
	}
	l.others.Wait()
	l.finish()
}

// call calls the handler with n, and measures it if it is behind.
func (l *processorListener) call(n *notification) {
	if l.pendingLen.Load() <= initialBufferSize {
		l.handle(n)
		return
	}
	began := l.clock.Now()
	l.handle(n)
	if took := l.clock.Since(began); took > slowHandler {
		l.slowCalls.Add(1)
		l.probe.Text(probe.HandlerSlow, took.String(), n.key, n.rv)
	}
}

func (l *processorListener) handle(n *notification) {
	l.probe.Event(probe.HandlerCalled, n.typ, n.key, n.rv)
	switch n.typ {
	case added:
		l.handler.OnAdd(n.obj, n.isInInitialList)
	case modified:
		l.handler.OnUpdate(n.old, n.obj)
	case deleted:
		l.handler.OnDelete(n.obj)
	}
	l.probe.Event(probe.HandlerReturned, n.typ, n.key, n.rv)
	if n.isInInitialList {
		l.syncTracker.Finished()
	}
}

// watchSynced runs until the informer has synced or the listener ends.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*processorListener).watchSynced
func (l *processorListener) watchSynced(context.Context) {
	select {
	case <-l.upstreamHasSynced:
		l.syncTracker.UpstreamHasSynced()
	case <-l.done:
	}
}

// finish says that the handler will not be called any more.
func (l *processorListener) finish() {
	l.probe.At(probe.ListenerRemoved, "", 0)
	close(l.runFinished)
}

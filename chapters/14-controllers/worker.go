package controllers

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	deltafifo "listwatch/chapters/10-deltafifo"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// reconciler is what differs from one controller to the next.
type reconciler interface {
	// reconcile looks at the object behind key, as the controller's cache shows it, and does the next thing about it,
	// if there is one. It is never called twice at once for one key. It must not remember what made a handler add the
	// key: the key says where to look, not what happened.
	reconcile(ctx context.Context, key string) (outcome, error)
}

// outcome is what became of one look at a key.
type outcome struct {
	did   string        // in words
	wrote int           // how many requests it sent that may change something
	again time.Duration // look again after this delay; 0: not until something changes
	why   string        // what is being waited for, if again is not 0
}

// worker is one pair of hands at a workqueue: take a key, look, let go.
type worker struct {
	queue      *RateLimitingQueue
	reconciler reconciler
	probe      *probe.Probe
}

// run works until ctx is done, or the queue is shut down and empty. In Get it waits for keys only: the waiting loop
// shuts the queue down when ctx is done.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil && w.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem returns false when there will be no more work.
func (w *worker) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	// Done comes last, after the retry was asked for: until then an Add of the key cannot start
	// a second look.
	defer w.queue.Done(key)
	outcome, err := w.reconciler.reconcile(ctx, key)
	if ctx.Err() != nil {
		return true // a request cut off by the end of the program is no failure of the key
	}
	if err != nil {
		delay := w.queue.AddRateLimited(key)
		w.again(key, err.Error(), delay)
		return true
	}
	w.queue.Forget(key)
	w.probe.Text(probe.Reconciled, outcome.did, key, 0, outcome.wrote)
	if outcome.again > 0 {
		w.queue.AddAfter(key, outcome.again)
		w.again(key, outcome.why, outcome.again)
	}
	return true
}

// again reports that key will come back.
func (w *worker) again(key, why string, delay time.Duration) {
	w.probe.Text(probe.WorkRetry, why, key, 0, int(delay.Milliseconds()))
}

// follow adds a quiet handler to an informer. f is told which object has changed: old is nil if it
// has come, obj if it is gone. The channel is closed when f was told what there is. It is nil, so
// that nothing begins, if the informer has stopped.
func follow[T metav1.Object](from *informer.SharedIndexInformer, f func(old, obj T)) <-chan struct{} {
	var none T
	handler := processor.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f(none, obj.(T)) },
		UpdateFunc: func(old, obj any) { f(old.(T), obj.(T)) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(deltafifo.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if last, known := obj.(T); known { // or nothing but its key is
				f(last, none)
			}
		},
	}
	registration, err := from.AddEventHandlerWithOptions(handler, informer.HandlerOptions{Quiet: true})
	if err != nil {
		return nil
	}
	return registration.HasSyncedChecker()
}

// runWorker lets one worker act until ctx is done. It does not begin before the informers have
// shown what there is: until then it would take objects for missing.
func runWorker(ctx context.Context, queue *RateLimitingQueue, r reconciler, synced ...<-chan struct{}) {
	var g routine.Group
	g.Go(ctx, "controller.waitingLoop", queue.Run)
	if informer.WaitFor(ctx, synced...) {
		g.Go(ctx, "controller.worker", (&worker{queue: queue, reconciler: r}).run)
	}
	g.Wait()
}

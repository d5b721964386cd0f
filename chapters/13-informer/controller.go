package informer

import (
	"context"
	"errors"
	"sync/atomic"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// Controller moves what the server sends from a reflector through a queue into a function.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: controller
type Controller struct {
	// Set by NewController, never changed.
	queue                 deltafifo.Queue // filled by the reflector, emptied by processLoop
	reflector             *reflector.Reflector
	process, processBatch deltafifo.PopProcessFunc
	probe                 *probe.Probe

	goroutines    routine.Group
	processErrors atomic.Int64
}

// NewController returns a controller that does nothing until [Controller.Run]. cfg describes the reflector; its Store
// is set to queue. process, or processBatch if queue knows batches, is given what the queue held, in the goroutine of
// Run. An error is counted, and what was being processed is gone.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: New
func NewController(queue deltafifo.Queue, cfg reflector.Config,
	process, processBatch deltafifo.PopProcessFunc) *Controller {
	cfg.Store = queue
	return &Controller{queue: queue, reflector: reflector.New(cfg), process: process, processBatch: processBatch,
		probe: cfg.Probe}
}

// Run reflects and processes until ctx is done, and returns when both have ended. What is still
// queued is dropped.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: (*controller).RunWithContext
// Differs: the loop is not restarted every second: nothing ends it but ctx.
func (c *Controller) Run(ctx context.Context) {
	c.goroutines.Go(ctx, "controller.closeQueue", c.closeQueue)
	c.goroutines.Go(ctx, "reflector.Run", c.reflector.Run)
	c.processLoop(ctx)
	c.goroutines.Wait()
}

// closeQueue makes the wait in Pop end when ctx does: a condition variable knows nothing of contexts.
func (c *Controller) closeQueue(ctx context.Context) {
	<-ctx.Done()
	c.queue.Close()
}

// processLoop processes one item, or one batch, after the other until ctx is done.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: (*controller).processLoop
func (c *Controller) processLoop(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.processNext()
		if errors.Is(err, deltafifo.ErrFIFOClosed) {
			return
		}
		if err != nil {
			// Not tried again: the object is what the server sent, it will not get better.
			c.processErrors.Add(1)
		}
		c.probe.At(probe.FIFOProcessed, "", 0)
	}
}

func (c *Controller) processNext() error {
	if batchQueue, ok := c.queue.(deltafifo.QueueWithBatch); ok {
		return batchQueue.PopBatch(c.processBatch, c.process)
	}
	return c.queue.Pop(c.process)
}

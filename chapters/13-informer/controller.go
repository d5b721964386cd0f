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

// ControllerConfig configures a [Controller].
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: Config
type ControllerConfig struct {
	// Queue is filled by the reflector and emptied by the controller.
	Queue deltafifo.Queue
	// Reflector describes the reflector. Its Store is set to Queue.
	Reflector reflector.Config
	// Process and ProcessBatch are given what the queue held, in the goroutine of Run. An error is counted, and what
	// was being processed is gone. ProcessBatch is used if Queue knows batches.
	Process, ProcessBatch deltafifo.PopProcessFunc
}

// Controller moves what the server says from a reflector through a queue into a processing
// function.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: controller
type Controller struct {
	// Set by NewController, never changed.
	config    ControllerConfig
	reflector *reflector.Reflector

	goroutines    routine.Group
	processErrors atomic.Int64
}

// NewController returns a controller that does nothing until [Controller.Run].
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: New
func NewController(cfg ControllerConfig) *Controller {
	cfg.Reflector.Store = cfg.Queue
	return &Controller{config: cfg, reflector: reflector.New(cfg.Reflector)}
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
	c.config.Queue.Close()
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
		c.config.Reflector.Probe.At(probe.FIFOProcessed, "", 0)
	}
}

func (c *Controller) processNext() error {
	batchQueue, ok := c.config.Queue.(deltafifo.QueueWithBatch)
	if ok && c.config.ProcessBatch != nil {
		return batchQueue.PopBatch(c.config.ProcessBatch, c.config.Process)
	}
	return c.config.Queue.Pop(c.config.Process)
}

// HasSyncedChecker is done when the first list has been processed.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: (*controller).HasSyncedChecker
func (c *Controller) HasSyncedChecker() deltafifo.DoneChecker {
	return c.config.Queue.HasSyncedChecker()
}

// LastSyncResourceVersion is how far the reflector is; the store may be behind it.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: (*controller).LastSyncResourceVersion
func (c *Controller) LastSyncResourceVersion() string { return c.reflector.LastSyncResourceVersion() }

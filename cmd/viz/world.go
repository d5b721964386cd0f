package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/viz"
)

// world lets the page act on the running pipeline.
type world struct {
	watchers *pipeline.Watchers
}

var _ viz.World = world{}

func (w world) AddWatcher(ctx context.Context, options viz.WatcherOptions) (string, error) {
	return w.watchers.Add(ctx, pipeline.WatcherOptions(options))
}

func (w world) RemoveWatcher(id string) error { return w.watchers.Remove(id) }

func (w world) Watchers() []viz.WatcherInfo {
	var infos []viz.WatcherInfo
	for _, each := range w.watchers.List() {
		infos = append(infos, viz.WatcherInfo{ID: each.ID, UserAgent: each.UserAgent, Options: viz.WatcherOptions(each.Options), Error: each.Error})
	}
	return infos
}

// wireOf returns the open watches of the client half for the page.
func wireOf(client *pipeline.Client) []viz.WireStream {
	var streams []viz.WireStream
	for _, each := range client.Wire() {
		streams = append(streams, viz.WireStream{OpenedBy: each.OpenedBy(), Bytes: each})
	}
	return streams
}

// worldClock is the clock of the pipeline: the real one, or one that stands still until it is told to move.
type worldClock struct {
	clock.WithTicker
	manual *clocktesting.FakeClock // nil: real
}

func newWorldClock(kind string) *worldClock {
	if kind == "manual" {
		manual := clocktesting.NewFakeClock(time.Now())
		return &worldClock{WithTicker: manual, manual: manual}
	}
	return &worldClock{WithTicker: clock.RealClock{}}
}

// startupTick is the pace of a manual clock until everything is ready.
const startupTick = 10 * time.Millisecond

// runUntilReady lets a manual clock follow the real one until the returned function is called: without time nothing
// would ever become ready. It returns a function that may be called once.
func (c *worldClock) runUntilReady() (stop func()) {
	if c.manual == nil {
		return func() {}
	}
	done := make(chan struct{}) // closed by stop
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(startupTick)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				c.manual.Step(startupTick)
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// advance returns what moves the clock, nil if it runs by itself.
func (c *worldClock) advance() func(time.Duration) {
	if c.manual == nil {
		return nil
	}
	return c.manual.Step
}

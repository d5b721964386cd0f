package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/hold"
	"listwatch/internal/probe"
	"listwatch/internal/routine"
	"listwatch/internal/worldclock"
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

// clocks are the times of the program's inside and of those who ask from outside.
type clocks struct {
	world    *worldclock.Clock
	patience *worldclock.Clock // never stands
	routines routine.Group
	cancel   context.CancelFunc
}

// startClocks returns running clocks. They run until stop is called: what waits for them ends before.
func startClocks() *clocks {
	ctx, cancel := context.WithCancel(context.Background())
	c := &clocks{world: worldclock.New(time.Now()), patience: worldclock.New(time.Now()), cancel: cancel}
	c.routines.Go(ctx, "worldclock.run", c.world.Run)
	c.routines.Go(ctx, "worldclock.patience", c.patience.Run)
	return c
}

// stop returns when the clocks have stopped.
func (c *clocks) stop() {
	c.cancel()
	c.routines.Wait()
}

// newHold returns the world that can be held.
func newHold(c *clocks, log *probe.Log, stderr io.Writer) *hold.World {
	return hold.New(hold.Config{
		Gate: log.Gate(), Clock: c.world, Patience: c.patience, Wall: clock.RealClock{},
		Say: func(line string) { fmt.Fprintf(stderr, "viz: %s\n", line) },
	})
}

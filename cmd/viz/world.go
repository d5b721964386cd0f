package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/worldclock"
)

// clocks are the times of the program's inside and of requests from outside.
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

// tellStops reports each time at which the program goes on after it was stopped as a whole, until ctx is done. The
// clock that never stands is the one that knows.
func tellStops(ctx context.Context, c *clocks, p *probe.Probe) {
	for {
		select {
		case <-ctx.Done():
			return
		case stopped := <-c.patience.Stops():
			p.Text(probe.ProgramStopped, fmt.Sprintf("%.0f s", stopped.Seconds()), "", 0)
		}
	}
}

// newHold returns the world that can be held.
func newHold(c *clocks, log *probe.Log, stderr io.Writer) *hold.World {
	return hold.New(hold.Config{
		Gate: log.Gate(), Clock: c.world, Patience: c.patience, Wall: c.patience,
		Say: func(line string) { fmt.Fprintf(stderr, "viz: %s\n", line) },
	})
}

package machine

import (
	"context"
	"fmt"
	"time"

	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/worldclock"
)

// Clocks are the times of the program's inside and of requests from outside.
type Clocks struct {
	World    *worldclock.Clock
	patience *worldclock.Clock // never stands
}

// StartClocks returns running clocks. They run until stop is called, which returns when they have ended: what waits for
// them ends before.
func StartClocks() (c *Clocks, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c = &Clocks{World: worldclock.New(time.Now()), patience: worldclock.New(time.Now())}
	var routines routine.Group
	routines.Go(ctx, "worldclock.run", c.World.Run)
	routines.Go(ctx, "worldclock.patience", c.patience.Run)
	return c, func() { cancel(); routines.Wait() }
}

// tellStops reports each time at which the program goes on after it was stopped as a whole, until ctx is done. The
// clock that never stands is the one that knows.
func (c *Clocks) tellStops(ctx context.Context, p *probe.Probe) {
	for {
		select {
		case <-ctx.Done():
			return
		case stopped := <-c.patience.Stops():
			p.Text(probe.ProgramStopped, fmt.Sprintf("%.0f s", stopped.Seconds()), "", 0)
		}
	}
}

// Hold returns the world that can be held. It tells say, line by line, what a viewer of no page would miss.
func (c *Clocks) Hold(log *probe.Log, say func(line string)) *hold.World {
	return hold.New(hold.Config{Gate: log.Gate(), Clock: c.World, Patience: c.patience, Say: say})
}

package main

import (
	"context"
	"io"
	"net"

	"k8s.io/utils/clock"

	"listwatch/internal/probe"
	"listwatch/internal/remote"
	"listwatch/internal/routine"
	"listwatch/viz"
)

// guest shows a server that is not ours, and forwards to it what comes to our port. Nothing of a server half runs.
func guest(ctx context.Context, o *options, listener net.Listener, stdout, stderr io.Writer) error {
	clocks := startClocks()
	defer clocks.stop()
	log := probe.NewLog(clocks.world, o.logSize)
	lens := remote.New(remote.Config{Servers: o.server, Writes: o.serverWrites, Clock: clock.RealClock{}})
	ui := newUI(o, listener, viz.Config{Log: log, API: lens, Lens: func() any { return lens.Report() }})
	ctx, fail := context.WithCancelCause(ctx)
	var group routine.Group
	defer group.Wait()
	defer fail(nil)
	front := &front{listener: listener, handler: ui, fail: fail, h2c: true}
	group.Go(ctx, "viz.ui", ui.Run)
	group.Go(ctx, "viz.lens", lens.Run)
	group.Go(ctx, "viz.front", front.run)
	announce(o, listener, stdout, stderr)
	<-ctx.Done()
	return ended(ctx)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/cmd/internal/machine"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/guest"
	"listwatch/internal/play/lens"
	"listwatch/viz"
	"listwatch/viz/frame"
	lensroom "listwatch/viz/lens"
	"listwatch/viz/timeline"
)

// guests runs our client half on a server that is not ours, and forwards to that server what comes to our port.
type guests struct {
	// Set by serveGuest, never changed.
	options  *options
	listener net.Listener
	lens     *lens.Lens
	stderr   io.Writer
	passing  routine.Group      // the front; serveGuest and run wait for it
	next     chan *guest.Choice // sent by Choose, received by run, never closed; buffered so that Choose never blocks

	now     atomic.Pointer[viz.UI]      // of the visit that runs
	visitor atomic.Pointer[guest.Guest] // likewise
}

// serverSwitch says in a recording that the server half was not ours.
const serverSwitch = "server"

// serveGuest shows a server that is not ours until ctx is done. Nothing of a server half runs.
func serveGuest(ctx context.Context, o *options, listener net.Listener, stdout, stderr io.Writer) error {
	g := &guests{
		options: o, listener: listener, stderr: stderr, next: make(chan *guest.Choice, 1),
		lens: lens.New(lens.Config{Servers: o.server, Writes: o.serverWrites, Clock: clock.RealClock{}}),
	}
	ctx, fail := context.WithCancelCause(ctx)
	var group routine.Group
	defer group.Wait()
	defer g.passing.Wait()
	defer fail(nil)
	group.Go(ctx, "viz.lens", g.lens.Run)
	// The front outlives ctx for as long as it takes its requests to end, which they do because the lens does.
	serving, stopServing := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { stopServing(lens.ErrEnds) })
	front := &front{listener: listener, handler: g, fail: fail, h2c: true, log: newFrontLog(stderr)}
	ready := sync.OnceFunc(func() {
		g.passing.Go(serving, "viz.front", front.run)
		announce(o, listener, stdout, stderr)
	})
	next := &guest.Choice{Resources: []string{"pods"}} // every server has them
	for next != nil {
		var err error
		if next, err = g.run(ctx, next, ready); err != nil {
			return err
		}
	}
	return machine.Ended(ctx)
}

// ServeHTTP lets the visit that runs answer. The front outlives visits, and so do the requests that the lens forwards.
func (g *guests) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.now.Load().ServeHTTP(w, r) }

// run runs one visit, with a log of its own, until ctx is done, and then returns nil; or until another choice is made.
func (g *guests) run(ctx context.Context, choice *guest.Choice, ready func()) (next *guest.Choice, err error) {
	o := g.options
	clocks, stopClocks := machine.StartClocks()
	defer stopClocks()
	log := probe.NewLog(clocks.World, o.LogSize)
	held := clocks.Hold(log, func(line string) { fmt.Fprintf(g.stderr, "viz: %s\n", line) })
	visitor, err := guest.New(guest.Config{
		Servers: o.server, Choice: *choice, Clock: clocks.World, Probe: probe.New(log),
		FIFO: o.Switches["fifo"], UseWatchList: pipeline.UseWatchList(o.Switches),
	})
	if err != nil {
		return nil, err
	}
	switches := o.Shown()
	switches[serverSwitch] = "elsewhere" // a recording need not tell where
	stopRecording, err := startRecording(o, switches, log, g.stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopRecording()) }()
	pictures := viz.NewPictures(log, nil, visitor.Recount)
	page := frame.New(log, pictures)
	page.Past.Switches = switches
	page.Inspector.Components = func() any { return visitor.Snapshot() }
	page.Hold = timeline.Hold{World: held, Log: log}
	page.Lens = lensroom.Room{Server: o.server[0].String(), Report: g.lens.Report, Guest: g}
	bring(page)
	ui := viz.New(pictures, page, g.lens, o.hosts(g.listener)...)
	ctx, end := context.WithCancel(ctx)
	var group routine.Group
	defer group.Wait()
	defer end()
	g.visitor.Store(visitor)
	g.lens.Show(log)
	g.now.Store(ui)
	group.Go(ctx, "viz.ui", ui.Run)
	group.Go(ctx, "viz.hold", held.Run)
	group.Go(ctx, "viz.guest", visitor.Run)
	held.SetPaused(o.Clock == machine.ClockManual)
	ready()
	select {
	case <-ctx.Done():
		g.passing.Wait() // the recording contains the ends of all requests
		return nil, nil
	case chosen := <-g.next:
		return chosen, nil
	}
}

var _ lensroom.Guest = (*guests)(nil)

// Choose implements [lensroom.Guest].
func (g *guests) Choose(wanted guest.Choice) error {
	if err := wanted.Check(); err != nil {
		return err
	}
	if g.options.record != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "resources"}, g.options.record,
			machine.ErrOneRecording)
	}
	return machine.Begin(g.next, &wanted, "resources")
}

// State implements [lensroom.Guest].
func (g *guests) State() guest.State { return g.visitor.Load().State() }

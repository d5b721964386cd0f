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
	"listwatch/internal/play/lens"
	"listwatch/internal/play/otherserver"
	"listwatch/viz"
	"listwatch/viz/frame"
	lensroom "listwatch/viz/lens"
	"listwatch/viz/timeline"
)

// guests runs our client half on another API server, one visit at a time. Each choice of resources begins a new visit.
type guests struct {
	// Set by serveGuest, never changed.
	options  *options
	listener net.Listener
	lens     *lens.Lens
	stderr   io.Writer
	passing  routine.Group            // the front's goroutines; serveGuest and run wait for them
	next     chan *otherserver.Choice // sent by Choose, received by run, never closed; buffers one until run receives

	now     atomic.Pointer[viz.UI]            // the current visit's page
	visitor atomic.Pointer[otherserver.Guest] // the current visit's guest
}

// serverSwitch names the switch by which a recording shows that its server half was not ours.
const serverSwitch = "server"

// serveGuest runs the client half on another API server until ctx is done. It starts nothing of the server half.
func serveGuest(ctx context.Context, o *options, listener net.Listener, stdout, stderr io.Writer) error {
	g := &guests{
		options: o, listener: listener, stderr: stderr, next: make(chan *otherserver.Choice, 1),
		lens: lens.New(lens.Config{Servers: o.server, Writes: o.serverWrites, Clock: clock.RealClock{}}),
	}
	ctx, fail := context.WithCancelCause(ctx)
	var group routine.Group
	defer group.Wait()
	defer g.passing.Wait()
	defer fail(nil)
	group.Go(ctx, "viz.lens", g.lens.Run)
	// When ctx is done, the front's requests end with lens.ErrEnds as the cause, which the lens reports.
	serving, stopServing := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { stopServing(lens.ErrEnds) })
	front := &front{listener: listener, handler: g, fail: fail, log: newFrontLog(stderr)}
	ready := sync.OnceFunc(func() {
		g.passing.Go(serving, "viz.front", front.run)
		announce(o, listener, stdout, stderr)
	})
	next := &otherserver.Choice{Resources: []string{"pods"}} // every server has pods
	for next != nil {
		var err error
		if next, err = g.run(ctx, next, ready); err != nil {
			return err
		}
	}
	return machine.Ended(ctx)
}

// ServeHTTP passes the request to the current visit. The front and the requests that the lens forwards outlive visits.
func (g *guests) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.now.Load().ServeHTTP(w, r) }

// run runs one visit, with its own log. It returns nil when ctx is done, or the new choice when the page sends one.
func (g *guests) run(
	ctx context.Context, choice *otherserver.Choice, ready func(),
) (next *otherserver.Choice, err error) {
	o := g.options
	clocks, stopClocks := machine.StartClocks()
	defer stopClocks()
	log := probe.NewLog(clocks.World, o.LogSize)
	held := clocks.Hold(log, func(line string) { fmt.Fprintf(g.stderr, "viz: %s\n", line) })
	visitor, err := otherserver.New(otherserver.Config{
		Servers: o.server, Choice: *choice, Clock: clocks.World, Probe: probe.New(log),
		FIFO: o.Switches["fifo"], UseWatchList: pipeline.UseWatchList(o.Switches),
	})
	if err != nil {
		return nil, err
	}
	switches := o.Shown()
	switches[serverSwitch] = "elsewhere" // a recording must not contain the address
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
		g.passing.Wait() // the recording must contain the ends of all requests
		return nil, nil
	case chosen := <-g.next:
		return chosen, nil
	}
}

func (g *guests) Choose(wanted otherserver.Choice) error {
	if err := wanted.Check(); err != nil {
		return err
	}
	if g.options.record != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "resources"}, g.options.record,
			machine.ErrOneRecording)
	}
	return machine.Begin(g.next, &wanted, "resources")
}

func (g *guests) State() otherserver.State { return g.visitor.Load().State() }

// Package machine is the program that every host of listwatch runs: both halves on an etcd, what is done to them,
// and the page that shows them, wired once. It knows no socket, no signal, no file and no other process. Those are
// its host's: cmd/viz runs it behind a port, with a real etcd, and cmd/tab in a browser's tab, with a small one.
package machine

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/rules"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/play/scenario"
	"listwatch/internal/server/apiserver"
	"listwatch/viz"
	"listwatch/viz/console"
	"listwatch/viz/frame"
	"listwatch/viz/stories"
	"listwatch/viz/timeline"
)

// Host is what a machine stands on. It outlives runs: one ends and the next begins when a switch is turned.
type Host struct {
	Etcd Etcd
	Base *url.URL // where the client half reaches what Serve serves

	// Lines returns the connections of a run's client half, and of the watchers that its viewers open.
	Lines func() (client, watchers *http.Client)
	// Serve serves a run until ctx is done and every handler has ended. It calls fail if serving breaks before.
	Serve func(ctx context.Context, handler http.Handler, fail context.CancelCauseFunc)
	// Page adds the rooms that the host brings along; nil: none.
	Page  func(page *frame.Page)
	Hosts []string // by which the page may be called, as [viz.Guard] has them
	// Record begins to write the log; nil: nothing is recorded. stop is called when nothing else of the run is
	// left.
	Record func(log *probe.Log) (stop func() error, err error)
	// Recorded names what Record writes: a recording is of one run, so nothing can be switched. "": it can.
	Recorded string
	// Beside starts what the host does beside a run; nil: nothing.
	Beside func(ctx context.Context, group *routine.Group, run *Run)
	// Say tells the person at the host a line.
	Say func(line string)
}

// Etcd is the etcd of a host.
type Etcd struct {
	Client  etcd3.Client
	Ready   func() error                    // why it would refuse a write; nil: it never does
	State   func() any                      // how it is, as something that marshals to JSON; nil: unknown
	Restart func(ctx context.Context) error // nil: it cannot be restarted
}

// Run is one run of both halves, with its own log and clocks, as its host sees it.
type Run struct {
	Options  Options
	Log      *probe.Log
	Promises *rules.Monitor
	Sandbox  *sandbox.Sandbox
	Server   *pipeline.Server
	Pictures *viz.Pictures
	Fail     context.CancelCauseFunc // ends the program, for a reason

	host  *Host
	first Options      // of the host's first run
	next  chan Options // sent by Begin, received by run, never closed; buffered so that Begin never blocks
}

// Serve runs the machine until ctx is done or something essential breaks, and returns when nothing of it runs any
// more. It calls ready once, when everything of the first run is.
func Serve(ctx context.Context, h *Host, first Options, ready func()) error {
	ready = sync.OnceFunc(ready)
	for now := &first; now != nil; {
		r := &Run{Options: *now, host: h, first: first, next: make(chan Options, 1)}
		var err error
		if now, err = r.run(ctx, ready); err != nil {
			return err
		}
	}
	return nil
}

// run runs until ctx is done or something essential breaks, and then returns nil; or until other switches are wanted,
// and returns the options with those. Then nothing of it runs any more.
func (r *Run) run(ctx context.Context, ready func()) (next *Options, err error) {
	h := r.host
	clocks, stopClocks := StartClocks()
	defer stopClocks()
	log := probe.NewLog(clocks.World, r.Options.LogSize)
	log.LimitLoud(probe.LoudLanes, sandbox.Followed)
	r.Log, r.Promises = log, rules.NewMonitor(log)
	held := clocks.Hold(log, h.Say)
	connections := sandbox.NewConnections(h.Lines())
	p, err := r.newPipeline(clocks, connections.Client)
	if err != nil {
		return nil, err
	}
	var awaited chan struct{} // closed by viewed
	viewed := func() {}
	if r.Options.AwaitPage {
		awaited = make(chan struct{})
		viewed = sync.OnceFunc(func() { close(awaited) })
	}
	owner, err := sandbox.New(sandbox.Config{
		Pipeline: p, Connections: connections, Base: h.Base, Clock: clocks.World, Probe: probe.New(log),
		Gate: log.Gate(), Demo: r.Options.Demo, Awaited: awaited, MaxTraffic: r.Options.MaxTraffic, Switcher: r,
		RingCapacity: r.Options.RingCapacity, RestartEtcd: h.Etcd.Restart, Etcd: h.Etcd.State,
	})
	if err != nil {
		return nil, err
	}
	player := &scenario.Env{Pipeline: p, Sandbox: owner, Log: log, Probe: probe.New(log), Clock: clocks.World}
	pictures := viz.NewPictures(log, nil, p.Recount)
	page := frame.New(log, pictures)
	page.Past.Switches, page.Viewed = r.Options.Shown(), viewed
	page.Inspector.Components, page.Inspector.Wire = func() any { return p.Snapshot() }, connections.Wire
	page.Hold = timeline.Hold{World: held, Log: log}
	page.Stories = stories.Gallery{Stories: scenario.All, Play: player.Play}
	page.Knobs.Sandbox, page.Promises.Monitor = owner, r.Promises
	page.Console = console.Room{Ask: owner.Ask}
	if h.Page != nil {
		h.Page(page)
	}
	player.Lab = page.Promises.Lab != nil
	r.Server, r.Sandbox, r.Pictures = p.Server, owner, pictures
	ui := viz.New(pictures, page, p.Server.Handler(), h.Hosts...)

	if h.Record != nil {
		stop, wrong := h.Record(log)
		if wrong != nil {
			return nil, wrong
		}
		defer func() { err = errors.Join(err, stop()) }() // last: the recording contains the end of all the others
	}
	ctx, r.Fail = context.WithCancelCause(ctx)
	var group routine.Group
	defer group.Wait()
	defer r.Fail(nil)
	group.Go(ctx, "viz.ui", ui.Run)
	group.Go(ctx, "viz.stops", func(ctx context.Context) { clocks.tellStops(ctx, probe.New(log)) })
	group.Go(ctx, "viz.hold", held.Run)
	group.Go(ctx, "viz.rules", r.Promises.Run)
	group.Go(ctx, "viz.lanes", func(ctx context.Context) {
		routine.Every(ctx, clock.RealClock{}, time.Second, func(context.Context) { log.SumLanes() })
	})
	if h.Beside != nil {
		h.Beside(ctx, &group, r)
	}
	front := func(ctx context.Context) { h.Serve(ctx, ui, r.Fail) }
	group.Go(ctx, "viz.pipeline", func(ctx context.Context) { p.Run(ctx, front, owner.Run) })

	err = p.WaitReady(ctx)
	held.SetPaused(r.Options.Clock == ClockManual) // not before: without time nothing would ever become ready
	if err == nil {
		ready()
		select {
		case <-ctx.Done():
		case other := <-r.next:
			next = &other
		}
	}
	return next, Ended(ctx)
}

func (r *Run) newPipeline(clocks *Clocks, over *http.Client) (*pipeline.Pipeline, error) {
	o, etcd, p := r.Options, r.host.Etcd, probe.New(r.Log)
	server, err := pipeline.NewServer(pipeline.ServerConfig{
		Client: etcd.Client, Handler: apiserver.Handler(etcd.Ready), Clock: clocks.World,
		Patience: clocks.patience, Probe: p, MediaType: o.MediaType, EtcdWatcher: o.Switches["etcd-watcher"],
		Dispatch:     o.Switches["dispatch"],
		RingCapacity: o.RingCapacity, UseWatchList: pipeline.UseWatchList(o.Switches),
	})
	if err != nil {
		return nil, err
	}
	client, err := pipeline.NewClient(pipeline.ClientConfig{
		Base: r.host.Base, HTTP: over, Clock: clocks.World, Probe: p, FIFO: o.Switches["fifo"],
		UseWatchList: pipeline.UseWatchList(o.Switches), Controllers: o.Controllers, Events: true,
		Registry: server.Registry(),
	})
	if err != nil {
		return nil, err
	}
	return &pipeline.Pipeline{Server: server, Client: client}, nil
}

// Ended returns why ctx is done: nil if the program was told to end, otherwise what broke.
func Ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

var _ sandbox.Switcher = (*Run)(nil)

// Why nothing is switched.
var (
	ErrOneRecording = errors.New("a recording is being written, and is of one run with one set of switches")
	errEndsAlready  = errors.New("both halves are starting again already; ask again when they have")
)

// Switch implements [sandbox.Switcher].
func (r *Run) Switch(name, value string) (again func() error, err error) {
	for _, each := range pipeline.Switches {
		if each.Name != name {
			continue
		}
		if values := []string{each.Today, each.Before}; !slices.Contains(values, value) {
			return nil, apierrors.NewBadRequest("-" + name + " " + value + ": want " + each.Today + " or " +
				each.Before)
		}
		other := r.Options
		other.Switches = maps.Clone(other.Switches)
		other.Switches[name] = value
		return r.switchTo(other)
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "switches"}, name)
}

// Now implements [sandbox.Switcher].
func (r *Run) Now() map[string]string { return r.Options.Shown() }

// Restore implements [sandbox.Switcher].
func (r *Run) Restore() (again func() error, err error) { return r.switchTo(r.first) }

// switchTo returns what ends the run for another with these options; nil if they are the same.
func (r *Run) switchTo(other Options) (again func() error, err error) {
	if maps.Equal(other.Switches, r.Options.Switches) {
		return nil, nil
	}
	if name := r.host.Recorded; name != "" {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "switches"}, name, ErrOneRecording)
	}
	return func() error { return Begin(r.next, other, "switches") }, nil
}

// Begin ends a run, which receives from next, for another with other options: resources of that name. The error is
// 409 if it ends already.
func Begin[O any](next chan<- O, other O, resources string) error {
	select {
	case next <- other:
		return nil
	default:
		return apierrors.NewConflict(schema.GroupResource{Resource: resources}, "", errEndsAlready)
	}
}

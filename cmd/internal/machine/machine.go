// Package machine is the program that every host of listwatch runs: it wires together an etcd, both halves, the
// viewers' controls, and the page. It opens no socket or file, handles no signal and starts no process; its hosts do
// so. cmd/viz runs it behind a port, with a real etcd, and cmd/tab in a browser's tab, with a small one.
package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/rules"
	"listwatch/internal/observe/worldclock"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/play/scenario"
	"listwatch/internal/server/apiserver"
	"listwatch/viz"
	"listwatch/viz/console"
	"listwatch/viz/frame"
	"listwatch/viz/stories"
	"listwatch/viz/timeline"
)

// Host is the environment of a machine. It outlives runs: turning a switch ends one run and begins the next.
type Host struct {
	Etcd Etcd
	Base *url.URL // the URL at which the client half reaches the handler of Serve

	// Lines returns HTTP clients for a run's client half, and for the watchers that its viewers open.
	Lines func() (client, watchers *http.Client)
	// Serve serves a run until ctx is done and every handler has ended. It calls fail if serving breaks earlier.
	Serve func(ctx context.Context, handler http.Handler, fail context.CancelCauseFunc)
	// Page adds the host's own rooms to the page; nil: none.
	Page  func(page *frame.Page)
	Hosts []string // the host names under which a browser may open the page, as for [viz.Guard]
	// Record begins to write the log; nil: nothing is recorded. The machine calls stop after a run's last record.
	Record func(log *probe.Log) (stop func() error, err error)
	// Recorded names what Record writes. If it is not "", no switch can be turned, because a recording holds one run.
	Recorded string
	// Beside starts the host's own goroutines for a run; nil: none.
	Beside func(ctx context.Context, group *routine.Group, run *Run)
	// Say prints a line for the person at the host.
	Say func(line string)
}

// Etcd is the etcd of a host.
type Etcd struct {
	Client  etcd3.Client
	Ready   func() error                    // returns why etcd would refuse a write; a nil func: etcd refuses none
	State   func() any                      // etcd's state, as a value that marshals to JSON; nil: unknown
	Restart func(ctx context.Context) error // restarts etcd; nil: the host cannot
}

// Run is one run of both halves, with a log and clocks of its own.
type Run struct {
	Options  Options
	Log      *probe.Log
	Promises *rules.Monitor
	Sandbox  *sandbox.Sandbox
	Server   *pipeline.Server
	Pictures *viz.Pictures
	Fail     context.CancelCauseFunc // ends the program, with a reason

	host  *Host
	first Options      // the options of the host's first run
	next  chan Options // sent by Begin, received by run, never closed; buffers one value until run receives
}

// Serve runs the machine until ctx is done or something essential breaks, and returns when all its goroutines have
// ended. It returns the fault, or nil after ctx is done. It calls ready once: when both halves are first ready.
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

// run runs until ctx is done, something essential breaks, or a viewer turns a switch. After a viewer has turned a
// switch, next is the following run's options; otherwise it is nil. All goroutines have ended when run returns.
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
	owner, err := sandbox.New(sandbox.Config{
		Pipeline: p, Connections: connections, Base: h.Base, Clock: clocks.World, Probe: probe.New(log),
		Gate: log.Gate(), Log: log, Demo: r.Options.Demo, MaxTraffic: r.Options.MaxTraffic,
		Switcher: r, RingCapacity: r.Options.RingCapacity, RestartEtcd: h.Etcd.Restart, Etcd: h.Etcd.State,
	})
	if err != nil {
		return nil, err
	}
	player := &scenario.Env{Pipeline: p, Sandbox: owner, Log: log, Probe: probe.New(log), Clock: clocks.World}
	pictures := viz.NewPictures(log, nil, p.Recount)
	page := frame.New(log, pictures)
	page.Past.Switches = r.Options.Shown()
	page.Inspector.Components = func() any { return p.Snapshot() }
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
		defer func() { err = errors.Join(err, stop()) }() // runs last: the recording must contain both halves' end
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
		routine.Every(ctx, clock.RealClock{}, time.Second, func(context.Context) { log.LookAtCrowd() })
	})
	if h.Beside != nil {
		h.Beside(ctx, &group, r)
	}
	front := func(ctx context.Context) { h.Serve(ctx, ui, r.Fail) }
	group.Go(ctx, "viz.pipeline", func(ctx context.Context) { p.Run(ctx, front, owner.Run) })

	err = p.WaitReady(ctx)
	held.SetPaused(r.Options.Clock == ClockManual) // not earlier: nothing becomes ready while the clock is stopped
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
		Dispatch: o.Switches["dispatch"], RingCapacity: o.RingCapacity, UseWatchList: pipeline.UseWatchList(o.Switches),
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

// Ended returns the fault that ended ctx. It is nil before the end, and after an end without a fault, as by a signal.
func Ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// The reasons for which another run cannot begin.
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

// switchTo returns a function that restarts with other's options: nil if no switch differs. A recording causes a 409.
func (r *Run) switchTo(other Options) (again func() error, err error) {
	if maps.Equal(other.Switches, r.Options.Switches) {
		return nil, nil
	}
	if name := r.host.Recorded; name != "" {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "switches"}, name, ErrOneRecording)
	}
	return func() error { return Begin(r.next, other, "switches") }, nil
}

// Begin ends a run by sending it the next run's options. If next already holds options, it returns a 409 for resources.
func Begin[O any](next chan<- O, other O, resources string) error {
	select {
	case next <- other:
		return nil
	default:
		return apierrors.NewConflict(schema.GroupResource{Resource: resources}, "", errEndsAlready)
	}
}

// ClockManual is the value of Options.Clock that stops the clock as soon as everything is ready.
const ClockManual = "manual"

// Options are the settings of a run.
type Options struct {
	Demo         bool              // whether gentle built-in traffic runs
	Controllers  []string          // the names of the controllers that run, out of pipeline.Controllers
	Switches     map[string]string // the values of the switches in pipeline.Switches, by name
	MediaType    string            // the encoding of the objects in etcd
	RingCapacity int               // entries in each history ring; 0: dynamic
	MaxTraffic   int               // the limit of a viewer's rate, in changes a second; 0: the sandbox's own limit
	LogSize      int               // records that the log keeps
	Clock        string            // "real" or [ClockManual]
	Etcd         string            // "memory": the small etcd; "": a real one
}

// Shown returns the options that the page shows, by name.
func (o Options) Shown() map[string]string {
	all := maps.Clone(o.Switches)
	all["storage-media-type"], all["ring-capacity"], all["clock"] = o.MediaType, "dynamic", o.Clock
	if o.RingCapacity > 0 {
		all["ring-capacity"] = strconv.Itoa(o.RingCapacity)
	}
	if o.Etcd != "" {
		all["etcd"] = o.Etcd
	}
	return all
}

// Clocks are the program's two clocks: one for the machine, and one for waits for clients and for hold's watchdog.
type Clocks struct {
	World    *worldclock.Clock
	patience *worldclock.Clock // no viewer can stop it
}

// StartClocks returns running clocks. stop ends the clocks and returns when they have ended. Call stop after all users
// of the clocks have ended.
func StartClocks() (c *Clocks, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c = &Clocks{World: worldclock.New(time.Now()), patience: worldclock.New(time.Now())}
	var routines routine.Group
	routines.Go(ctx, "worldclock.run", c.World.Run)
	routines.Go(ctx, "worldclock.patience", c.patience.Run)
	return c, func() { cancel(); routines.Wait() }
}

// tellStops reports each stop of the whole process that has lasted a second or longer, until ctx is done. The patience
// clock, which no viewer can stop, notices the stops.
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

// Hold returns the world that a viewer can hold. Its watchdog calls say with the reason when it resumes the world.
func (c *Clocks) Hold(log *probe.Log, say func(line string)) *hold.World {
	return hold.New(hold.Config{Gate: log.Gate(), Clock: c.World, Patience: c.patience, Say: say})
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

const heldPeriod = 250 * time.Millisecond // a waiting request checks this often whether a gate is closed

// Config describes a [Sandbox]. Pipeline, Connections and Clock are required.
type Config struct {
	Pipeline     *pipeline.Pipeline
	Connections  *Connections // the connections of the client half
	Base         *url.URL     // the address of the server half; may be nil if nothing calls [Sandbox.Ask]
	Clock        clock.WithTicker
	Probe        *probe.Probe                    // nil: off
	Gate         *probe.Gate                     // may hold the world; nil: there is none
	Demo         bool                            // make gentle traffic for viewers
	Log          *probe.Log                      // the demo rests after a viewer's write in this log; nil: it does not
	MaxTraffic   int                             // the highest rate of traffic, in changes a second; 0: [MaxTraffic]
	RingCapacity int                             // the server half's setting for every history ring; 0: dynamic
	RestartEtcd  func(ctx context.Context) error // stops etcd and starts it again on its data; nil: not possible
	Etcd         func() any                      // the state of etcd, for JSON; nil: unknown
	Switcher     Switcher                        // nil: there are no switches
}

// Switcher restarts both halves with other switches of the command line. Switch and Restore return a function that ends
// the session for the restart, or nil if the switches already have these values. They return a 409 if the session must
// not end. The returned function returns a 409 if the session is already ending.
type Switcher interface {
	// Switch prepares a restart with another value of one switch. It returns a 404 or 400 for an unknown name or value.
	Switch(name, value string) (again func() error, err error)
	// Restore prepares a restart with the switches that the program was started with.
	Restore() (again func() error, err error)
	// Now returns the present values by the switches' names: "real" for "fifo".
	Now() map[string]string
}

// Sandbox owns all commands: see the package comment.
type Sandbox struct {
	// Set by New, never changed.
	config   Config
	watchers *watchers
	handlers *handlers
	traffic  *traffic
	demo     *demo          // nil: none
	knobs    map[string]row // by name

	// Sent by do, received by Run, never closed; unbuffered: Run answers each command that it receives.
	commands chan *order
	// Sent by each command's goroutine, received by Run, never closed; unbuffered: Run outlives the commands.
	finished chan *order
	ended    chan struct{} // closed by Run when it accepts no more commands
	last     atomic.Uint64 // id of the newest command

	// Owned by Run. But a command may add to jobs, and a story's command reads alone before it calls begun.
	jobs    routine.Group     // the goroutines of commands and watchers
	running int               // number of commands under way
	alone   map[string]*order // commands under way that exclude others of their kind, by kind
	ending  bool              // the session is ending: Run refuses every new command but an undo

	// Owned by the command that has the machine to itself: see command.
	before []Knob // the knobs that restore the first states, in the order of the first turns
	story  *Run   // nil: none is under way; finish sets nil while no command has the machine to itself
}

// command makes one change to the machine, or plays a story and undoes it, on a goroutine of its own. Until the command
// calls begun, it must not wait, and no other command begins. A command that takes no time need not call begun.
type command func(ctx context.Context, begun func()) error

// order is a command with the facts that the owner needs. The request sets the first two groups of fields; do sets the
// third.
type order struct {
	do   command
	name string // the command's name in answers and records: "etcd.restart"
	kind string // only one command of a kind runs at a time; "": any number
	undo bool   // undoes something that was begun: runs to its end even while the session ends
	long bool   // the request waits for the end even in a held world

	story *Run // the command's story; if it is cancelled, the command is refused; nil: none

	id   uint64
	over chan error    // sent once, by Run, if the request still waits; unbuffered
	left chan struct{} // closed by the request when it stops waiting

	err error // set by the command's goroutine before the goroutine sends to finished
}

// Receipt is the state of a command when its request returns.
type Receipt struct {
	ID       uint64 // number of the command in this session
	UnderWay bool   // the request returned early, because a gate is closed; CommandEnded will report the end
}

// New returns a sandbox and registers the handler observer. It starts nothing, and fails if the informer has stopped.
func New(config Config) (*Sandbox, error) {
	s := &Sandbox{
		config:   config,
		traffic:  newTraffic(config.Pipeline.Server.Storage("pods"), config.Clock, config.MaxTraffic),
		commands: make(chan *order), finished: make(chan *order), ended: make(chan struct{}),
		alone: map[string]*order{},
	}
	s.watchers, s.handlers = &watchers{Config: &s.config}, &handlers{Config: &s.config}
	s.knobs = s.table()
	if config.Demo {
		s.demo = &demo{Config: &s.config, client: config.Pipeline.Client.NewClient(Demo, nil)}
	}
	return s, s.handlers.reserve(observer).register()
}

// Run accepts commands until ctx is done, and returns when all commands are over and any story is undone. Call it
// once, together with the client half: the sandbox's watchers are clients, too.
func (s *Sandbox) Run(ctx context.Context) {
	var clients routine.Group
	clients.Go(ctx, "traffic", s.traffic.Run)
	if s.demo != nil {
		clients.Go(ctx, "demo", s.demo.Run)
	}
	s.own(ctx)
	s.jobs.Wait()
	clients.Wait()
	s.config.Connections.CloseIdleConnections() // the client half does so, too, but may end first
}

// own is Run's main loop. When the session ends, it sets the handlers' delays to 0, and returns after the last command.
func (s *Sandbox) own(ctx context.Context) {
	defer close(s.ended)
	done := ctx.Done()
	for !s.ending || s.running > 0 {
		select {
		case <-done:
			done = nil // a nil channel is never ready again
			s.ending = true
			for _, each := range s.handlers.all() {
				each.setDelay(0) // the informer is about to wait for the handlers
			}
		case o := <-s.commands:
			s.take(ctx, o)
		case o := <-s.finished:
			s.finish(o)
		}
	}
}

// take starts or refuses a command. It returns when the next one may begin.
func (s *Sandbox) take(ctx context.Context, o *order) {
	other := s.alone[o.kind]
	switch {
	case s.ending && !o.undo:
		o.answer(errEnding)
		return
	case o.story != nil && o.story.Ctx.Err() != nil:
		o.answer(errCancelled)
		return
	case other != nil:
		o.answer(conflict(o.name, fmt.Errorf("%s is under way", other.name)))
		return
	case o.undo:
		ctx = context.WithoutCancel(ctx)
	}
	s.running++
	if o.kind != "" {
		s.alone[o.kind] = o
	}
	s.start(ctx, o.do, func(err error) {
		o.err = err
		s.finished <- o
	})
}

// start starts a command on a goroutine of its own, and returns when the next one may begin. At the end the goroutine
// calls over with the command's error.
func (s *Sandbox) start(ctx context.Context, do command, over func(error)) {
	begun := make(chan struct{}) // closed when the next command may begin; nothing is sent
	begin := sync.OnceFunc(func() { close(begun) })
	s.jobs.Go(ctx, "sandbox.command", func(ctx context.Context) {
		err := do(ctx, begin)
		begin()
		over(err)
	})
	<-begun
}

// finish removes a command that is over, and then answers the request, whose client may at once send another such
// command. If the request no longer waits, finish writes a record of the end.
func (s *Sandbox) finish(o *order) {
	s.running--
	delete(s.alone, o.kind)
	if o.kind == storyKind {
		s.story = nil
	}
	if o.answer(o.err) {
		return
	}
	text := o.name + " is done"
	if o.err != nil {
		text = o.name + ": " + o.err.Error()
	}
	s.config.Probe.Text(probe.CommandEnded, text, "", 0, int(o.id))
}

// answer sends the command's error to the request, and reports whether the request still waited.
func (o *order) answer(err error) bool {
	select {
	case o.over <- err:
		return true
	case <-o.left:
		return false
	}
}

// do queues a command and waits until it is over. It returns earlier if ctx is done or, unless o is long, while a gate
// is closed. The error is the command's own, 409 if another of its kind is under way, or 503 if the session, the story
// or ctx ends. The client may still read this last 503, because the HTTP server cancels ctx when it shuts down.
func (s *Sandbox) do(ctx context.Context, o *order) (Receipt, error) {
	o.id, o.over, o.left = s.last.Add(1), make(chan error), make(chan struct{})
	defer close(o.left)
	select {
	case s.commands <- o:
	case <-s.ended:
		return Receipt{}, errEnding
	case <-ctx.Done():
		return Receipt{}, refusal(o.name, ctx.Err())
	}
	look := time.NewTicker(heldPeriod)
	defer look.Stop()
	for {
		select {
		case err := <-o.over:
			return Receipt{ID: o.id}, refusal(o.name, err)
		case <-ctx.Done():
			return Receipt{}, refusal(o.name, ctx.Err())
		case <-look.C:
			if !o.long && s.config.Gate != nil && s.config.Gate.Closed() {
				return Receipt{ID: o.id, UnderWay: true}, nil
			}
		}
	}
}

// turned writes a record of a knob's turn.
func (s *Sandbox) turned(k Knob) {
	s.config.Probe.Texts(probe.KnobTurned, []string{k.Name, k.Target, k.Value}, "", 0)
}

var errEnding = apierrors.NewServiceUnavailable("both halves end; ask again when they run")

func conflict(what string, reason error) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "commands"}, what, reason)
}

// refusal turns an error without a status into a 503: the client may try again.
func refusal(what string, err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: %v", what, err))
}

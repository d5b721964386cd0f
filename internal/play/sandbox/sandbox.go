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

const heldPeriod = 250 * time.Millisecond // how long a request waits for effects that a held world stops

// Config describes a [Sandbox]. Pipeline, Connections and Clock are required.
type Config struct {
	Pipeline     *pipeline.Pipeline
	Connections  *Connections // over which the client half was built
	Base         *url.URL     // the address of the server half; nil: [Sandbox.Ask] is not used
	Clock        clock.WithTicker
	Probe        *probe.Probe                    // nil: off
	Gate         *probe.Gate                     // that may hold the world; nil: there is none
	Demo         bool                            // make gentle traffic
	Awaited      <-chan struct{}                 // the demo begins when it is closed; nil: at once
	MaxTraffic   int                             // the most that may be asked for, in changes a second; 0: [MaxTraffic]
	RingCapacity int                             // of every history ring, as the server half was configured; 0: dynamic
	RestartEtcd  func(ctx context.Context) error // stops etcd and starts it again on its data; nil: it is not ours
	Etcd         func() any                      // how etcd is, as something that marshals to JSON; nil: unknown
	Switcher     Switcher                        // nil: nothing can be switched
}

// Switcher starts both halves again with other switches. The functions that Switch and Restore return end the session
// for that; their error is 409 if it cannot end, or ends already. A nil function says that the switches are as asked
// already.
type Switcher interface {
	// Switch is about one switch of the command line. The error is 404 or 400 for what cannot be set.
	Switch(name, value string) (again func() error, err error)
	// Restore is about the switches as the command line had them.
	Restore() (again func() error, err error)
	// Now returns the switches as they are: "fifo" to "real".
	Now() map[string]string
}

// Sandbox owns all commands. See the package.
type Sandbox struct {
	// Set by New, never changed.
	config      Config
	connections *Connections
	watchers    *watchers
	handlers    *handlers
	traffic     *traffic
	demo        *demo          // nil: none
	knobs       map[string]row // by name

	// sent by do, received by Run, never closed; unbuffered: what is received is answered
	commands chan *order
	// sent by each command's goroutine, received by Run, never closed; unbuffered: Run outlives them
	finished chan *order
	ended    chan struct{} // closed by Run when it takes no more
	last     atomic.Uint64 // id of the newest command

	// Owned by Run.
	jobs    routine.Group     // commands, and the watchers
	running int               // commands that are not over
	alone   map[string]*order // that run and exclude others of their kind, by kind
	ending  bool              // the session ends: only what was begun goes on

	// Owned by the command that has the machine to itself: see command.
	before []Knob // puts back each knob that was turned, in the order of the first turns
	story  *Run   // the current one; nil: none
}

// command does one thing to the machine, to its end or to its undo, on a goroutine of its own. It has the machine to
// itself until it calls begun: no other command begins. Up to there it waits for nothing. It need not call begun if
// nothing in it takes time.
type command func(ctx context.Context, begun func()) error

// order is a command with what the owner must know to take it. The asking request sets the fields of the first group,
// and do those of the second.
type order struct {
	do   command
	name string // as answers and records call it: "etcd.restart"
	kind string // of which one runs at a time; "": any number
	undo bool   // of something that was begun: it is taken, and done to its end, also while the session ends
	long bool   // the request waits for its end, also in a held world

	story *Run // for which it is done, unless that is cancelled; nil: for none

	id   uint64
	over chan error    // sent once, by Run, while the request waits; unbuffered
	left chan struct{} // closed by the request when it waits no longer

	err error // set by the command's goroutine before it sends to finished
}

// Receipt is the state of a command at its answer.
type Receipt struct {
	ID       uint64 // counts the commands of this session
	UnderWay bool   // the world is held, and the command with it: how it ends will be a record, CommandEnded
}

// New wires a sandbox and adds the observer to the handlers. Nothing runs until [Sandbox.Run].
func New(config Config) (*Sandbox, error) {
	s := &Sandbox{
		config:      config,
		connections: config.Connections,
		traffic:     newTraffic(config.Pipeline.Server.Storage("pods"), config.Clock, config.MaxTraffic),

		commands: make(chan *order), finished: make(chan *order), ended: make(chan struct{}),
		alone: map[string]*order{},
	}
	s.watchers, s.handlers = &watchers{Config: &s.config}, &handlers{Config: &s.config}
	s.knobs = s.table()
	if config.Demo {
		s.demo = &demo{Config: &s.config, client: config.Pipeline.Client.NewClient(userAgent+"-demo", nil)}
	}
	return s, s.handlers.reserve(observer).register()
}

// Run takes commands until ctx is done, and returns when all that it has begun is over: stories are undone by then. It
// is called once, together with the client half: its watchers are clients, too.
func (s *Sandbox) Run(ctx context.Context) {
	var clients routine.Group
	clients.Go(ctx, "traffic", s.traffic.Run)
	if s.demo != nil {
		clients.Go(ctx, "demo", s.demo.Run)
	}
	s.own(ctx)
	s.jobs.Wait()
	clients.Wait()
	s.connections.CloseIdleConnections() // as the client half does with its own
}

// own is the owner's loop. It ends when the session does and the last command is over.
func (s *Sandbox) own(ctx context.Context) {
	defer close(s.ended)
	done := ctx.Done()
	for !s.ending || s.running > 0 {
		select {
		case <-done:
			done = nil // once
			s.ending = true
			for _, each := range s.handlers.all() {
				each.setDelay(0) // their informer is about to wait for them
			}
		case o := <-s.commands:
			s.take(ctx, o)
		case o := <-s.finished:
			s.finish(o)
		}
	}
}

// take starts a command, or refuses it. It returns when the next one may begin.
func (s *Sandbox) take(ctx context.Context, o *order) {
	other := s.alone[o.kind]
	switch {
	case s.ending && !o.undo:
		o.answer(errEnding())
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

// start starts a command on a goroutine of its own, and returns when others may begin. At the end that goroutine calls
// over with the command's error.
func (s *Sandbox) start(ctx context.Context, do command, over func(error)) {
	begun := make(chan struct{}) // closed when others may begin; nothing is sent
	begin := sync.OnceFunc(func() { close(begun) })
	s.jobs.Go(ctx, "sandbox.command", func(ctx context.Context) {
		err := do(ctx, begin)
		begin()
		over(err)
	})
	<-begun
}

// finish notes that a command is over before it answers: the request may bring another of its kind. If the request no
// longer waits, finish reports the end to the log.
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

// do queues a command. It returns when the command is over, or earlier if ctx is done or the world is held, and the
// effects with it. Errors: the command's own, 503 if the session ends, that of ctx.
func (s *Sandbox) do(ctx context.Context, o *order) (Receipt, error) {
	o.id, o.over, o.left = s.last.Add(1), make(chan error), make(chan struct{})
	defer close(o.left)
	select {
	case s.commands <- o:
	case <-s.ended:
		return Receipt{}, errEnding()
	case <-ctx.Done():
		return Receipt{}, ctx.Err()
	}
	look := time.NewTicker(heldPeriod)
	defer look.Stop()
	for {
		select {
		case err := <-o.over:
			return Receipt{ID: o.id}, refusal(o.name, err)
		case <-ctx.Done():
			return Receipt{}, ctx.Err()
		case <-look.C:
			if !o.long && s.config.Gate != nil && s.config.Gate.Closed() {
				return Receipt{ID: o.id, UnderWay: true}, nil
			}
		}
	}
}

// turned reports a knob's turn to the log.
func (s *Sandbox) turned(k Knob) {
	s.config.Probe.Texts(probe.KnobTurned, []string{k.Name, k.Target, k.Value}, "", 0)
}

func errEnding() error {
	return apierrors.NewServiceUnavailable("both halves end; ask again when they run")
}

func conflict(what string, reason error) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "commands"}, what, reason)
}

// refusal makes an error without a status a 503: the client may try again.
func refusal(what string, err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: %v", what, err))
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/probe"
	"listwatch/internal/routine"
)

const (
	maxCommands = 16                     // that wait to be taken; who comes then waits with its request
	heldPeriod  = 250 * time.Millisecond // how long a request waits for effects that are held
)

// Config says what the sandbox acts on. Pipeline, Connections and Clock are required.
type Config struct {
	Pipeline    *pipeline.Pipeline
	Connections *Connections // over which the client half was built
	Clock       clock.WithTicker
	Probe       *probe.Probe // nil: off
	Gate        *probe.Gate  // that may hold the world; nil: none does
	Demo        bool         // make gentle traffic
	// RingCapacity is that of every history ring, as the server half was configured; 0: dynamic.
	RingCapacity int
	RestartEtcd  func(ctx context.Context) error // stops etcd and starts it again on its data; nil: it is not ours
	Cluster      Cluster                         // the nodes of an etcd that is ours and has several; nil: there are none
	Modes        Modes                           // nil: they cannot be switched
}

// Cluster is an etcd of several nodes.
type Cluster interface {
	// Names are the nodes.
	Names() []string
	// Running reports whether a node runs. It does not block.
	Running(name string) bool
	// Run starts a node, or stops it as one that dies. Once begun it is done whatever becomes of ctx.
	Run(ctx context.Context, name string, up bool) error
}

// Modes starts both halves again in other modes. What its methods return ends the session for that; the error is 409 if
// it cannot end, or ends already. Nil: the modes are set as they are.
type Modes interface {
	// Switch is about one mode of the command line. The error is 404 or 400 for what cannot be set.
	Switch(name, value string) (again func() error, err error)
	// Restore is about the modes as the command line had them.
	Restore() (again func() error, err error)
}

// Sandbox owns everything that is done to the machine. See the package for how.
type Sandbox struct {
	// Set by New, never changed.
	config      Config
	connections *Connections
	watchers    *Watchers
	handlers    *Handlers
	traffic     *Traffic
	demo        *Demo // nil: none

	commands chan *command // sent by do, received by Run, never closed; room for maxCommands
	finished chan *command // sent by the commands that take time, received by Run, never closed; unbuffered: Run outlives them
	ended    chan struct{} // closed by Run when it takes no more

	// Owned by Run.
	jobs    routine.Group // what takes time, and the watchers
	running int           // how many of those there are
	ending  bool          // the session ends: only what was begun goes on
	story   *Story        // that is told; nil: none
	tours   int           // pages that give their tour

	mu    sync.Mutex          // guards the fields below, which Run alone changes; innermost
	alone map[string]*command // that run and exclude others of their kind, by kind
	fixed map[string]int      // by resource: the capacity its ring was told to keep
}

// command is one thing to do.
type command struct {
	// Set by who asks, never changed.
	what string // "etcd.restart": for answers
	kind string // of which there is one at a time; "": any number
	undo bool   // of something that was begun: it is taken, and done to its end, also while the session ends
	long bool   // the request waits for its end, also in a held world
	// begin is called by Run. It waits for nothing. What takes time it returns as rest, which is called on a goroutine of
	// its own; nil: there is none. An error says that nothing was done.
	begin func(ctx context.Context) (rest func(context.Context) error, err error)

	err   error         // of rest; set by its goroutine before it sends to finished
	over  chan error    // sent once, by Run; room for it
	taken chan struct{} // closed by Run when there is a rest, and it is begun; nothing is sent
}

// New wires a sandbox and adds the observer to the handlers. Nothing runs until [Sandbox.Run].
func New(config Config) (*Sandbox, error) {
	s := &Sandbox{
		config:      config,
		connections: config.Connections,
		watchers:    newWatchers(config.Pipeline.Client, config.Connections, config.Clock),
		handlers:    newHandlers(config.Pipeline.Client.Pods(), config.Clock),
		traffic:     newTraffic(config.Pipeline.Server.Storage("pods"), config.Clock),

		commands: make(chan *command, maxCommands), finished: make(chan *command), ended: make(chan struct{}),
		alone: map[string]*command{}, fixed: map[string]int{},
	}
	if config.Demo {
		s.demo = newDemo(config.Pipeline.Client.NewClient(userAgent+"-demo", nil, nil), config.Clock)
	}
	added := s.handlers.newHandler(observer)
	s.handlers.reserve(added)
	return s, s.handlers.register(added)
}

// Run takes commands until ctx is done, and returns when all that it has begun is over: stories are undone by then. It is
// called once, together with the client half: its watchers are clients, too.
func (s *Sandbox) Run(ctx context.Context) {
	var clients routine.Group
	clients.Go(ctx, "traffic", s.traffic.Run)
	if s.demo != nil {
		clients.Go(ctx, "demo", s.demo.Run)
	}
	s.own(ctx)
	s.jobs.Wait()
	clients.Wait()
	s.connections.watchers.CloseIdleConnections() // as the client half does with its own
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
			s.handlers.end()
		case c := <-s.commands:
			s.take(ctx, c)
		case c := <-s.finished:
			s.finish(c)
		}
	}
}

// take begins a command, or refuses it.
func (s *Sandbox) take(ctx context.Context, c *command) {
	if s.ending && !c.undo {
		c.over <- errEnding()
		return
	}
	if other := s.alone[c.kind]; c.kind != "" && other != nil {
		c.over <- conflict(c.what, fmt.Errorf("%s is under way", other.what))
		return
	}
	rest, err := c.begin(ctx)
	if err != nil || rest == nil {
		c.over <- err
		return
	}
	if c.undo {
		ctx = context.WithoutCancel(ctx)
	}
	s.setAlone(c.kind, c)
	s.running++
	close(c.taken)
	s.jobs.Go(ctx, "sandbox.command", func(ctx context.Context) {
		c.err = rest(ctx)
		s.finished <- c
	})
}

// finish notes that a command is over, and only then says so: who hears of the end may ask for another of its kind.
func (s *Sandbox) finish(c *command) {
	s.running--
	s.setAlone(c.kind, nil)
	if c.kind == storyKind {
		s.story = nil
	}
	c.over <- c.err
}

func (s *Sandbox) setAlone(kind string, c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == "" || c == nil {
		delete(s.alone, kind)
		return
	}
	s.alone[kind] = c
}

// do has a command done. It returns when it is over, or earlier if ctx is done, or if the world is held and its effects
// have to wait. Errors: what the command says, 503 if the session ends.
func (s *Sandbox) do(ctx context.Context, c *command) error {
	c.over, c.taken = make(chan error, 1), make(chan struct{})
	select {
	case s.commands <- c:
	case <-s.ended:
		return errEnding()
	case <-ctx.Done():
		return ctx.Err()
	}
	look := time.NewTicker(heldPeriod)
	defer look.Stop()
	for {
		select {
		case err := <-c.over:
			return refusal(c.what, err)
		case <-s.ended:
			return s.last(c)
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			if s.stands(c) {
				return nil
			}
		}
	}
}

// stands reports whether the rest of a command may be held with the world, and the request waits no longer.
func (s *Sandbox) stands(c *command) bool {
	select {
	case <-c.taken:
		return !c.long && s.config.Gate != nil && s.config.Gate.Closed()
	default:
		return false
	}
}

// last returns what became of a command when the owner has ended.
func (s *Sandbox) last(c *command) error {
	select {
	case err := <-c.over:
		return refusal(c.what, err)
	default:
		return errEnding() // it was never taken
	}
}

// turned says in the log that something was turned.
func (s *Sandbox) turned(text string) {
	s.config.Probe.Text(probe.KnobTurned, text, "", 0)
}

func errEnding() error {
	return apierrors.NewServiceUnavailable("both halves end; ask again when they run")
}

func conflict(what string, reason error) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "commands"}, what, reason)
}

// refusal gives an error a status, if it has none: what could not be done is not the fault of who asked, and can be tried
// again.
func refusal(what string, err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: %v", what, err))
}

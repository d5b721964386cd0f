package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/rules"
	"listwatch/internal/play/lab"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/play/scenario"
	"listwatch/viz"
)

// session is one run of both halves, with its own log and clocks, on an etcd and a port that outlive it.
type session struct {
	// Set by live, never changed.
	options  *options
	first    *options // of the command line
	etcd     etcd
	listener *net.TCPListener
	flights  *recording.Budget // of all sessions
	stderr   io.Writer
	next     chan *options // sent by begin, received by run, never closed; buffered so that begin never blocks
}

// run runs until ctx is done or something essential breaks, and then returns nil; or until other switches are wanted,
// and returns those. Then nothing of it runs any more. It calls ready when everything is.
func (s *session) run(ctx context.Context, ready func()) (next *options, err error) {
	o := s.options
	clocks := startClocks()
	defer clocks.stop()
	log := probe.NewLog(clocks.world, o.logSize)
	log.LimitLoud(probe.LoudLanes, sandbox.Followed)
	held := newHold(clocks, log, s.stderr)
	connections := sandbox.NewConnections(newHTTPClient(nil), newHTTPClient(dialNarrow))
	p, err := newPipeline(o, s.etcd, clocks, probe.New(log), baseURL(o.listen, s.listener.Addr().(*net.TCPAddr)),
		connections.Client())
	if err != nil {
		return nil, err
	}
	owner, err := sandbox.New(sandbox.Config{
		Pipeline: p, Connections: connections, Clock: clocks.world, Probe: probe.New(log), Gate: log.Gate(),
		Demo:         o.demo,
		RingCapacity: o.ringCapacity, RestartEtcd: s.etcd.restart, Cluster: s.etcd.cluster, Modes: s,
		Etcd: func() any { return s.etcd.keeper.State() },
	})
	if err != nil {
		return nil, err
	}
	_, _, inLab := lab.In(".")
	stories := &scenario.World{
		Pipeline: p, Sandbox: owner, Log: log, Probe: probe.New(log), Clock: clocks.world, Lab: inLab,
	}
	promises := rules.NewMonitor(log)
	ui := newUI(o, s.listener, viz.Config{
		Log:       log,
		Snapshot:  func() any { return p.Snapshot() },
		Recount:   p.Recount,
		Wire:      connections.Wire,
		API:       p.Server.Handler(),
		Hold:      held,
		Rules:     promises,
		Sandbox:   owner,
		Play:      stories.Play,
		Scenarios: scenario.All,
	})

	stopRecording, err := startRecording(o, log, s.stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopRecording()) }() // last: the recording contains the end of all the others
	ctx, fail := context.WithCancelCause(ctx)
	var group routine.Group
	defer group.Wait()
	defer fail(nil)
	front := &front{listener: lend(s.listener), handler: ui, fail: fail}
	group.Go(ctx, "viz.ui", ui.Run)
	lookAfterEtcd(ctx, &group, s.etcd, p.Server, probe.New(log), fail)
	group.Go(ctx, "viz.stops", func(ctx context.Context) { tellStops(ctx, clocks, probe.New(log)) })
	group.Go(ctx, "viz.hold", held.Run)
	group.Go(ctx, "viz.rules", func(ctx context.Context) { promises.Run(ctx, clock.RealClock{}) })
	group.Go(ctx, "viz.lanes", func(ctx context.Context) {
		routine.Every(ctx, clock.RealClock{}, time.Second, func(context.Context) { log.SumLanes() })
	})
	startFlight(ctx, &group, s, log, promises, ui)
	group.Go(ctx, "viz.pipeline", func(ctx context.Context) { p.Run(ctx, front.run, owner.Run) })

	err = awaitReady(ctx, p, s.etcd)
	held.SetPaused(o.clock == clockManual) // not before: without time nothing would ever become ready
	if err == nil {
		ready()
		select {
		case <-ctx.Done():
		case next = <-s.next:
		}
	}
	return next, ended(ctx)
}

var _ sandbox.Modes = (*session)(nil)

// Why nothing is switched.
var (
	errOneRecording = errors.New("a recording is being written, and is of one run with one set of switches")
	errEndsAlready  = errors.New("both halves are starting again already; ask again when they have")
)

// Switch implements [sandbox.Modes].
func (s *session) Switch(name, value string) (again func() error, err error) {
	other := *s.options
	chosen, ok := other.modes()[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "switches"}, name)
	}
	if err := chosen.Set(value); err != nil {
		return nil, apierrors.NewBadRequest("-" + name + " " + value + ": " + err.Error())
	}
	return s.switchTo(&other)
}

// Now implements [sandbox.Modes].
func (s *session) Now() map[string]string { return s.options.switches() }

// Restore implements [sandbox.Modes].
func (s *session) Restore() (again func() error, err error) { return s.switchTo(s.first) }

// switchTo returns what ends the session for another with these options; nil if they are the same.
func (s *session) switchTo(other *options) (again func() error, err error) {
	if maps.Equal(other.switches(), s.options.switches()) {
		return nil, nil
	}
	if s.options.record != "" {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "switches"}, s.options.record, errOneRecording)
	}
	return func() error { return s.begin(other) }, nil
}

// begin ends the session, for another with these options. The error is 409 if it ends already.
func (s *session) begin(other *options) error {
	select {
	case s.next <- other:
		return nil
	default:
		return apierrors.NewConflict(schema.GroupResource{Resource: "switches"}, "", errEndsAlready)
	}
}

// lentListener is a listener that its user may close: only the user ends by it.
type lentListener struct{ *net.TCPListener }

// lend returns listener for one user; there is one at a time.
func lend(listener *net.TCPListener) lentListener {
	_ = listener.SetDeadline(time.Time{}) // fails only if it is closed, and Accept will say so
	return lentListener{listener}
}

// Close makes a waiting Accept return. The next user accepts the connections that come from now on.
func (l lentListener) Close() error { return l.SetDeadline(time.Unix(1, 0)) }

// Accept says of a listener that is given back that it is closed. For net/http a deadline would be a reason to try
// again.
func (l lentListener) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed
	}
	return conn, err
}

package main

import (
	"context"
	"io"
	"maps"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"listwatch/internal/probe"
	"listwatch/internal/routine"
	"listwatch/internal/rules"
	"listwatch/internal/scenario"
	"listwatch/viz"
)

// session is one run of both halves, with its own log and clocks, on an etcd and a port that outlive it.
type session struct {
	// Set by live, never changed.
	options  *options
	first    *options // of the command line
	etcd     etcd
	listener *net.TCPListener
	stderr   io.Writer
	next     chan *options // sent by change, received by run, never closed; holds 1: while it is taken, nobody has to wait
}

// run runs until ctx is done or something essential breaks, and then returns nil; or until other switches are wanted, and
// returns those. Then nothing of it runs any more. It calls ready when everything is.
func (s *session) run(ctx context.Context, ready func()) (next *options, err error) {
	o := s.options
	clocks := startClocks()
	defer clocks.stop()
	log := probe.NewLog(clocks.world, o.logSize)
	held := newHold(clocks, log, s.stderr)
	p, err := newPipeline(o, s.etcd.client, clocks, probe.New(log), baseURL(s.listener))
	if err != nil {
		return nil, err
	}
	p.RestartEtcd = s.etcd.restart
	promises := rules.NewMonitor(log)
	ui, err := newUI(o, s.listener, viz.Config{
		Log:      log,
		Snapshot: func() any { return p.Snapshot() },
		World:    world{p.Client.Watchers},
		Wire:     func() []viz.WireStream { return wireOf(p.Client) },
		API:      p.Server.Handler(),
		Hold:     held,
		Rules:    promises,
		Sandbox: &sandbox{
			session:  s,
			pipeline: p,
			stories:  &scenario.World{Pipeline: p, Log: log, Probe: probe.New(log), Clock: clocks.world},
		},
		Scenarios: scenarios(),
	})
	if err != nil {
		return nil, err
	}

	ctx, fail := context.WithCancelCause(ctx)
	var group routine.Group
	defer group.Wait()
	defer fail(nil)
	if err := startRecording(ctx, &group, o, log, fail); err != nil {
		return nil, err
	}
	front := &front{listener: lend(s.listener), handler: ui, fail: fail}
	group.Go(ctx, "viz.ui", ui.Run)
	group.Go(ctx, "viz.hold", held.Run)
	group.Go(ctx, "viz.rules", func(ctx context.Context) { promises.Run(ctx, clock.RealClock{}) })
	startFlight(ctx, &group, o, log, promises, ui, s.stderr)
	group.Go(ctx, "viz.pipeline", func(ctx context.Context) { p.Run(ctx, front.run) })

	err = p.WaitReady(ctx)
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

// change ends the session, for another with one switch set to value. That it was heard is all that is known when it
// returns. The error is an apierrors.APIStatus, and then nothing was done.
func (s *session) change(name, value string) error {
	other := *s.options
	chosen, ok := other.ages()[name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "switches"}, name)
	}
	if err := chosen.Set(value); err != nil {
		return apierrors.NewBadRequest("-" + name + " " + value + ": " + err.Error())
	}
	return s.begin(&other)
}

// begin ends the session, for another with these options, if they differ. The error is 409 if it cannot, or ends already.
func (s *session) begin(other *options) error {
	if maps.Equal(other.switches(), s.options.switches()) {
		return nil
	}
	if s.options.record != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "switches"}, s.options.record, errOneRecording)
	}
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

// Close lets whoever waits in Accept return. Who connects from now on is accepted by the next user.
func (l lentListener) Close() error { return l.SetDeadline(time.Unix(1, 0)) }

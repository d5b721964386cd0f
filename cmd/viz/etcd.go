package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/server/etcdnode"
)

// lastWords is how long the page has to receive why the program ends.
const lastWords = 500 * time.Millisecond

// etcd is the etcd that is used. It outlives sessions.
type etcd struct {
	client  etcd3.Client
	keeper  *etcdnode.Keeper
	close   func() error                    // ends it and everything that was started for it
	restart func(ctx context.Context) error // nil: it is not ours, or has several nodes
	cluster sandbox.Cluster                 // nil: it is not ours, or has one node
	broken  <-chan struct{}                 // closed when it cannot go on; nil: it is not ours
	err     func() error                    // then: why
}

// ready returns why etcd would refuse a write.
func (e etcd) ready() error { return e.keeper.State().Ready() }

// openEtcd returns the etcd to use.
func openEtcd(ctx context.Context, o *options, stderr io.Writer) (used etcd, err error) {
	if o.etcdEndpoints != "" {
		external, err := etcdnode.Dial(ctx, strings.Split(o.etcdEndpoints, ","), o.etcdTLS)
		if err != nil {
			return etcd{}, err
		}
		keeper := etcdnode.NewKeeper(external, false, clock.RealClock{})
		return etcd{client: etcd3.NewClient(external), keeper: keeper, close: external.Close}, nil
	}
	dir, removeDir := o.dataDir, func() error { return nil }
	if dir == "" {
		dir, err = os.MkdirTemp("", "listwatch-")
		if err != nil {
			return etcd{}, fmt.Errorf("make a folder for etcd's data (TMPDIR says where, or -data-dir): %w", err)
		}
		removeDir = func() error { return os.RemoveAll(dir) }
	}
	ours, err := etcdnode.Start(ctx, etcdnode.Options{
		Dir: dir, Nodes: o.etcdNodes, Durable: o.dataDir != "", Quota: o.etcdQuota,
	})
	if err != nil {
		return etcd{}, errors.Join(err, removeDir())
	}
	used = etcd{client: etcd3.NewClient(ours.Client()), broken: ours.Broken(), err: ours.Err}
	used.close = func() error { return errors.Join(ours.Close(), removeDir()) }
	if o.etcdNodes == 1 {
		used.keeper = etcdnode.NewKeeper(ours.Client(), true, clock.RealClock{})
		used.restart = func(ctx context.Context) error { return conflict(ours.Restart(ctx)) }
		return used, nil
	}
	used.keeper = etcdnode.NewKeeper(ours.Client(), true, clock.RealClock{}, ours.Names()...)
	used.cluster = ours
	const line = "viz: another viz on this etcd: -etcd-endpoints %s -etcd-cacert %s -etcd-cert %s -etcd-key %s\n"
	files := ours.Files()
	fmt.Fprintf(stderr, line, strings.Join(ours.Endpoints(), ","), files.CACert, files.Cert, files.Key)
	return used, nil
}

// conflict makes the status of a command that came at the wrong time.
func conflict(err error) error {
	if errors.Is(err, etcdnode.ErrRestarting) || errors.Is(err, etcdnode.ErrClosed) {
		return apierrors.NewConflict(schema.GroupResource{Resource: "knobs"}, "etcd.restart", err)
	}
	return err
}

// lookAfterEtcd starts what looks after etcd while a session runs: what keeps it within its quota and says in the log
// how it is, and what ends the program, by fail, when etcd cannot go on.
func lookAfterEtcd(
	ctx context.Context, group *routine.Group, used etcd, server *pipeline.Server, p *probe.Probe,
	fail context.CancelCauseFunc,
) {
	said := &etcdReport{probe: p, percent: -1}
	group.Go(ctx, "viz.etcdKeeper", func(ctx context.Context) { used.keeper.Run(ctx, server.Compact, said.hear) })
	group.Go(ctx, "viz.etcdBroken", func(ctx context.Context) { awaitBroken(ctx, used, p, fail) })
}

// awaitBroken runs until ctx is done or etcd cannot go on.
func awaitBroken(ctx context.Context, used etcd, p *probe.Probe, fail context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-used.broken:
	}
	p.Text(probe.EtcdFailed, used.err().Error(), "", 0)
	words := time.NewTimer(lastWords)
	defer words.Stop()
	select {
	case <-ctx.Done():
	case <-words.C:
	}
	fail(used.err())
}

// etcdReport tells the log how etcd is, each time that has changed.
type etcdReport struct {
	// Set when made, never changed.
	probe *probe.Probe

	// Owned by the keeper's goroutine.
	text    string // what was said last
	percent int
}

func (r *etcdReport) hear(state etcdnode.State) {
	text := state.String()
	percent, kB := state.Used()
	if text == r.text && percent == r.percent {
		return
	}
	r.text, r.percent = text, percent
	refuses := 0
	if state.Ready() != nil {
		refuses = 1
	}
	r.probe.Text(probe.EtcdLookedAt, text, "", 0, percent, kB, refuses)
}

// awaitReady returns when both halves hold their first state and the keeper knows how etcd is.
func awaitReady(ctx context.Context, p *pipeline.Pipeline, used etcd) error {
	if err := p.WaitReady(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-used.keeper.Looked():
		return nil
	}
}

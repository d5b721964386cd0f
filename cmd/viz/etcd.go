package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/etcdnode"
	"listwatch/internal/probe"
	"listwatch/internal/routine"
	"listwatch/internal/sandbox"
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
		return newEtcd(external, external.Close), nil
	}
	dir, removeDir := o.dataDir, func() error { return nil }
	if dir == "" {
		if err := etcdnode.RemoveLeft(""); err != nil {
			fmt.Fprintf(stderr, "viz: cannot remove what a program that was killed has left: %v\n", err)
		}
		dir, removeDir, err = etcdnode.Temporary("")
		if err != nil {
			return etcd{}, fmt.Errorf("make a folder for etcd's data (TMPDIR says where, or -data-dir): %w", err)
		}
	}
	where := etcdnode.Options{Dir: dir, Durable: o.dataDir != "", Quota: o.etcdQuota}
	if o.etcdNodes > 1 {
		used, err = openCluster(ctx, o.etcdNodes, where, removeDir, stderr)
	} else {
		used, err = openNode(ctx, where, removeDir)
	}
	if err != nil {
		return etcd{}, errors.Join(err, removeDir())
	}
	return used, nil
}

// openNode starts an etcd of one member, which only this program reaches.
func openNode(ctx context.Context, where etcdnode.Options, removeDir func() error) (used etcd, err error) {
	node, err := etcdnode.Start(ctx, where)
	if err != nil {
		return etcd{}, err
	}
	used = newEtcd(node.Client(), func() error { return errors.Join(node.Close(), removeDir()) })
	used.keeper = etcdnode.NewKeeper(node.Client(), true, clock.RealClock{})
	used.restart = func(ctx context.Context) error { return conflict(node.Restart(ctx)) }
	used.broken, used.err = node.Broken(), node.Err
	return used, nil
}

// openCluster starts an etcd of several nodes, and says how other programs reach it.
func openCluster(ctx context.Context, nodes int, where etcdnode.Options, removeDir func() error, stderr io.Writer) (used etcd, err error) {
	cluster, err := etcdnode.StartCluster(ctx, nodes, where)
	if err != nil {
		return etcd{}, err
	}
	used = newEtcd(cluster.Client(), func() error { return errors.Join(cluster.Close(), removeDir()) })
	used.keeper = etcdnode.NewKeeper(cluster.Client(), true, clock.RealClock{}, cluster.Names()...)
	used.cluster, used.broken, used.err = cluster, cluster.Broken(), cluster.Err
	files := cluster.Files()
	fmt.Fprintf(stderr, "viz: another viz on this etcd: -etcd-endpoints %s -etcd-cacert %s -etcd-cert %s -etcd-key %s\n",
		strings.Join(cluster.Endpoints(), ","), files.CACert, files.Cert, files.Key)
	return used, nil
}

func newEtcd(client *clientv3.Client, end func() error) etcd {
	return etcd{client: etcd3.NewClient(client), keeper: etcdnode.NewKeeper(client, false, clock.RealClock{}), close: end}
}

// conflict makes the status of a command that came at the wrong time.
func conflict(err error) error {
	if errors.Is(err, etcdnode.ErrRestarting) || errors.Is(err, etcdnode.ErrClosed) {
		return apierrors.NewConflict(schema.GroupResource{Resource: "knobs"}, "etcd.restart", err)
	}
	return err
}

// lookAfterEtcd starts what looks after etcd while a session runs: what keeps it within its quota, what says in the log how
// it is, and what ends the program, by fail, when etcd cannot go on.
func lookAfterEtcd(ctx context.Context, group *routine.Group, used etcd, server *pipeline.Server, c *clocks, p *probe.Probe, fail context.CancelCauseFunc) {
	group.Go(ctx, "viz.etcdKeeper", func(ctx context.Context) { used.keeper.Run(ctx, server.Compact) })
	group.Go(ctx, "viz.etcdReport", func(ctx context.Context) { reportEtcd(ctx, used.keeper, c.patience, p) })
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

// etcdReportPeriod is how often the log may hear of etcd.
const etcdReportPeriod = time.Second

// reportEtcd reports how etcd is, each time that has changed, until ctx is done.
func reportEtcd(ctx context.Context, keeper *etcdnode.Keeper, clk clock.WithTicker, p *probe.Probe) {
	ticker := clk.NewTicker(etcdReportPeriod)
	defer ticker.Stop()
	said, saidPercent := "", -1
	for {
		state := keeper.State()
		text := state.String()
		percent, kB := state.Used()
		if len(state.Members) > 0 && (text != said || percent != saidPercent) {
			said, saidPercent = text, percent
			refuses := 0
			if state.Ready() != nil {
				refuses = 1
			}
			p.Text(probe.EtcdLookedAt, text, "", 0, percent, kB, refuses)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

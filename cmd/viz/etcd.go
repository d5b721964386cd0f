package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	"listwatch/cmd/internal/machine"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/etcdnode"
)

// lastWords is how long the page has to receive why the program ends.
const lastWords = 500 * time.Millisecond

// etcd is the etcd that is used.
type etcd struct {
	machine.Etcd
	keeper *etcdnode.Keeper
	ours   *etcdnode.Etcd // nil: it runs elsewhere
	close  func() error   // ends it and everything that was started for it
}

// keptBy returns an etcd that keeper looks after.
func keptBy(keeper *etcdnode.Keeper, client *clientv3.Client, end func() error) etcd {
	return etcd{keeper: keeper, close: end, Etcd: machine.Etcd{
		Client: etcd3.NewClient(client), Ready: func() error { return keeper.State().Ready() },
		State: func() any { return keeper.State() },
	}}
}

// openEtcd returns the etcd to use.
func openEtcd(ctx context.Context, o *options, stderr io.Writer) (used etcd, err error) {
	if o.etcdEndpoints != "" {
		external, err := etcdnode.Dial(ctx, strings.Split(o.etcdEndpoints, ","), o.etcdTLS)
		if err != nil {
			return etcd{}, err
		}
		return keptBy(etcdnode.NewKeeper(ctx, external, false), external, external.Close), nil
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
	used = keptBy(etcdnode.NewKeeper(ctx, ours.Client(), true, ours.Names()...), ours.Client(),
		func() error { return errors.Join(ours.Close(), removeDir()) })
	used.ours = ours
	if o.etcdNodes == 1 {
		used.Restart = ours.Restart
		return used, nil
	}
	used.Cluster = ours
	const line = "viz: another viz on this etcd: -etcd-endpoints %s -etcd-cacert %s -etcd-cert %s -etcd-key %s\n"
	files := ours.Files()
	fmt.Fprintf(stderr, line, strings.Join(ours.Endpoints(), ","), files.CACert, files.Cert, files.Key)
	return used, nil
}

// lookAfterEtcd starts what looks after etcd beside a run: what keeps it within its quota and says in the log how it
// is, and what ends the program when etcd cannot go on.
func lookAfterEtcd(ctx context.Context, group *routine.Group, used etcd, run *machine.Run) {
	p := probe.New(run.Log)
	said, was := "", -1 // what the log was told last
	hear := func(state etcdnode.State) {
		text := state.String()
		percent, kB := state.Used()
		if text == said && percent == was {
			return
		}
		said, was = text, percent
		refuses := 0
		if state.Ready() != nil {
			refuses = 1
		}
		p.Text(probe.EtcdLookedAt, text, "", 0, percent, kB, refuses)
	}
	hear(used.keeper.State()) // before the program says that it listens
	group.Go(ctx, "viz.etcdKeeper", func(ctx context.Context) { used.keeper.Run(ctx, run.Server.Compact, hear) })
	if used.ours != nil {
		group.Go(ctx, "viz.etcdBroken", func(ctx context.Context) { awaitBroken(ctx, used.ours, p, run.Fail) })
	}
}

// awaitBroken runs until ctx is done or etcd cannot go on.
func awaitBroken(ctx context.Context, ours *etcdnode.Etcd, p *probe.Probe, fail context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-ours.Broken().Done():
	}
	why := context.Cause(ours.Broken())
	p.Text(probe.EtcdFailed, why.Error(), "", 0)
	_ = routine.Sleep(ctx, clock.RealClock{}, lastWords) // returns early if ctx is done
	fail(why)
}

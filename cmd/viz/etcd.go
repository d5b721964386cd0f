package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	"listwatch/cmd/internal/machine"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/etcdnode"
)

const (
	lookPeriod = time.Second
	lastWords  = 500 * time.Millisecond // time for the page to receive the reason for the end
)

// etcd is the etcd that the program uses, embedded or elsewhere.
type etcd struct {
	machine.Etcd
	client *clientv3.Client
	seen   *atomic.Pointer[etcdnode.State] // etcd's state at the last look
	ours   *etcdnode.Etcd                  // nil: etcd runs elsewhere
	close  func() error                    // closes client; also ends our etcd and removes its temporary folder
}

// openEtcd starts etcd, by default in a temporary folder, or connects to the etcd that the options name.
func openEtcd(ctx context.Context, o *options) (used etcd, err error) {
	if o.etcdEndpoints != "" {
		client, err := etcdnode.Dial(ctx, strings.Split(o.etcdEndpoints, ","), o.etcdTLS)
		if err != nil {
			return etcd{}, err
		}
		return lookedAt(ctx, client, client.Close), nil
	}
	dir, removeDir := o.dataDir, func() error { return nil }
	if dir == "" {
		dir, err = os.MkdirTemp("", "listwatch-")
		if err != nil {
			return etcd{}, fmt.Errorf("make a folder for etcd's data (TMPDIR says where, or -data-dir): %w", err)
		}
		removeDir = func() error { return os.RemoveAll(dir) }
	}
	ours, err := etcdnode.Start(ctx, etcdnode.Options{Dir: dir, Durable: o.dataDir != ""})
	if err != nil {
		return etcd{}, errors.Join(err, removeDir())
	}
	used = lookedAt(ctx, ours.Client(), func() error { return errors.Join(ours.Close(), removeDir()) })
	used.ours, used.Restart = ours, ours.Restart
	return used, nil
}

// lookedAt returns an etcd whose state has been looked at once. end becomes its close.
func lookedAt(ctx context.Context, client *clientv3.Client, end func() error) etcd {
	used := etcd{client: client, seen: new(atomic.Pointer[etcdnode.State]), close: end}
	used.look(ctx)
	used.Client = etcd3.NewClient(client)
	used.Ready = func() error { return used.seen.Load().Ready() }
	used.State = func() any { return used.seen.Load() }
	return used
}

func (e etcd) look(ctx context.Context) {
	state := etcdnode.Look(ctx, e.client)
	e.seen.Store(&state)
}

// lookAfterEtcd starts a goroutine that reports etcd's state to the run's log. If the etcd is ours, a second goroutine
// ends the program when etcd cannot go on.
func lookAfterEtcd(ctx context.Context, group *routine.Group, used etcd, run *machine.Run, say func(string)) {
	p := probe.New(run.Log)
	told := &etcdTold{probe: p, say: say}
	told.tell(used.seen.Load()) // now, before the program reports that it listens
	group.Go(ctx, "viz.lookAtEtcd", func(ctx context.Context) {
		routine.Every(ctx, clock.RealClock{}, lookPeriod, func(ctx context.Context) {
			used.look(ctx)
			if ctx.Err() == nil { // otherwise the look may have seen the program's own end
				told.tell(used.seen.Load())
			}
		})
	})
	if used.ours != nil {
		group.Go(ctx, "viz.etcdBroken", func(ctx context.Context) { awaitBroken(ctx, used.ours, p, run.Fail) })
	}
}

// etcdTold reports changes of etcd's state. It keeps the state that it reported last.
type etcdTold struct {
	probe   *probe.Probe
	say     func(line string)
	text    string
	percent int
}

// tell reports etcd's state to the log if its text or percentage has changed, and prints a new text if etcd is full.
func (t *etcdTold) tell(state *etcdnode.State) {
	percent, bytes, refuses := 0, int64(0), 0
	for _, m := range state.Members {
		bytes = max(bytes, m.Bytes)
		if m.Quota > 0 {
			percent = max(percent, int(100*m.Bytes/m.Quota))
		}
	}
	if state.Ready() != nil {
		refuses = 1
	}
	text := state.String()
	if text == t.text && percent == t.percent {
		return
	}
	if text != t.text && state.Members[0].Full {
		t.say("etcd: " + text)
	}
	t.text, t.percent = text, percent
	t.probe.Text(probe.EtcdLookedAt, text, "", 0, percent, int(bytes>>10), refuses)
}

// awaitBroken waits until etcd cannot go on, reports why, and ends the program. It returns early when ctx is done.
func awaitBroken(ctx context.Context, ours *etcdnode.Etcd, p *probe.Probe, fail context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-ours.Broken().Done():
	}
	why := context.Cause(ours.Broken())
	p.Text(probe.EtcdFailed, why.Error(), "", 0)
	_ = routine.Sleep(ctx, clock.RealClock{}, lastWords) // an early return means that ctx is done
	fail(why)
}

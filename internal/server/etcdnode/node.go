package etcdnode

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
)

var errClosed = errors.New("etcd has been closed")

// Options says of what an [Etcd] is made, and where and how it keeps its data.
type Options struct {
	Dir     string // holds etcd's "member" folder, or one folder for each of several nodes; created if missing
	Nodes   int    // 0: 1
	Durable bool   // wait for the disk on each write; otherwise data survives the process, but not a power failure
	Quota   int64  // bytes of the whole database, from which on etcd refuses writes; 0: [DefaultQuota]
}

// Etcd is a running etcd, of one node or of several.
type Etcd struct {
	// Set by Start, never changed.
	options   Options
	trouble   *trouble
	nodes     []*node
	names     []string    // of the nodes
	endpoints []string    // of several nodes
	files     TLSFiles    // of several nodes
	serverTLS *tls.Config // theirs, only read; nil: the node is alone
	client    *clientv3.Client

	lifeMu sync.Mutex // held while nodes are started or stopped, and by Close
	closed bool       // guarded by lifeMu
}

// Start starts etcd on the data in options.Dir and returns when it can be written to. Another process, or another Etcd
// of this one, that works on that data is an error, and so is another number of nodes that has made it. The caller
// closes it.
func Start(ctx context.Context, options Options) (*Etcd, error) {
	if options.Dir == "" {
		return nil, errors.New("start etcd: no data folder given")
	}
	options.Nodes, options.Quota = max(1, options.Nodes), cmp.Or(options.Quota, DefaultQuota)
	addresses, err := addressesOf(options.Dir, options.Nodes)
	if err != nil {
		return nil, err
	}
	e := &Etcd{options: options, trouble: newTrouble(options.Dir)}
	if options.Nodes == 1 {
		e.nodes, e.names = []*node{{name: "etcd", dir: options.Dir}}, []string{"etcd"}
		// It never asks: after a stop in a debugger an answer that is late would cost the connection.
		e.client, err = newClient([]string{"passthrough:///etcd"}, e.files, 0, grpc.WithContextDialer(e.nodes[0].dial))
	} else if e.files, err = newCertificate(options.Dir); err == nil {
		for i := range options.Nodes {
			n := &node{name: fmt.Sprintf("etcd-%d", i+1), peers: addresses[2*i], clients: addresses[2*i+1]}
			n.dir = filepath.Join(options.Dir, n.name)
			e.nodes, e.names = append(e.nodes, n), append(e.names, n.name)
			e.endpoints = append(e.endpoints, "https://"+n.clients)
		}
		if e.serverTLS, err = e.files.info().ServerConfig(); err == nil {
			e.client, err = newClient(e.endpoints, e.files, keepAlive)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := e.startAll(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Client returns the etcd's one client. It survives restarts, goes on to another node when one is gone, and is closed
// with the etcd.
func (e *Etcd) Client() *clientv3.Client { return e.client }

// Broken is done when a node cannot go on; its cause says why, and what to do about it. Then Close is all that is left.
func (e *Etcd) Broken() context.Context { return e.trouble.broken }

// Files are what other programs need to be clients of several nodes.
func (e *Etcd) Files() TLSFiles { return e.files }

// Endpoints are where several nodes listen for clients, in the order of Names.
func (e *Etcd) Endpoints() []string { return e.endpoints }

// Names are the nodes.
func (e *Etcd) Names() []string { return e.names }

// Running reports whether a node of that name runs. It does not block.
func (e *Etcd) Running(name string) bool {
	i := slices.Index(e.Names(), name)
	return i >= 0 && e.nodes[i].member.Load() != nil
}

// Run starts a node, or stops it as one that dies: it hands nothing over. A node that runs already, or is stopped
// already, stays so. Run waits for a change that is under way, and is then done whatever becomes of ctx. The error says
// that the etcd was closed or that there is no such node, or why the node does not start.
func (e *Etcd) Run(ctx context.Context, name string, up bool) error {
	i := slices.Index(e.Names(), name)
	if i < 0 {
		return fmt.Errorf("there is no etcd node %q", name)
	}
	return e.change(func() error {
		if up {
			return e.start(context.WithoutCancel(ctx), e.nodes[i])
		}
		e.nodes[i].stop()
		return nil
	})
}

// Restart stops all nodes and starts them again on their data. The client reconnects by itself; its watches lose
// nothing. Restart waits for a change that is under way. Once the stop has begun, ctx no longer counts: a caller that
// goes away must not leave etcd down. The error is that of ctx, or that the etcd was closed, if nothing was done; nodes
// that do not come back break the etcd.
func (e *Etcd) Restart(ctx context.Context) error {
	return e.change(func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.stopAll()
		err := e.startAll(context.WithoutCancel(ctx))
		if err != nil {
			e.trouble.report("it did not come back after a restart", err)
		}
		return err
	})
}

// change calls f with lifeMu held, unless the etcd was closed.
func (e *Etcd) change(f func() error) error {
	e.lifeMu.Lock()
	defer e.lifeMu.Unlock()
	if e.closed {
		return errClosed
	}
	return f()
}

// Close stops the client and all nodes and returns when nothing of them runs any more. Calling it again does nothing.
// What is left of a broken etcd cannot be ended, only left behind: the process is expected to end.
func (e *Etcd) Close() error {
	e.lifeMu.Lock() // after a restart that is under way
	defer e.lifeMu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	err := e.client.Close() // first: a client without a server would spend its last moments reconnecting
	e.stopAll()
	return err
}

// startAll starts the nodes together: the first of several cannot be written to before the second.
func (e *Etcd) startAll(ctx context.Context) error {
	var starting errgroup.Group
	for _, n := range e.nodes {
		starting.Go(func() error { return e.start(ctx, n) })
	}
	return starting.Wait()
}

func (e *Etcd) stopAll() {
	for _, n := range e.nodes {
		n.stop()
	}
}

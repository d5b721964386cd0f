package etcdnode

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
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
	options Options
	trouble *trouble
	nodes   []*node
	names   []string // of the nodes
	client  *clientv3.Client

	// Set by Start for several nodes, never changed.
	endpoints []string
	files     TLSFiles
	serverTLS *tls.Config

	lifeMu sync.Mutex // held while nodes are started or stopped, and by Close
	closed bool       // guarded by lifeMu
}

// node is one place for a member.
type node struct {
	// Set by Start, never changed.
	name           string
	dir            string
	peers, clients string // addresses of one node of several; "": the node is alone

	member atomic.Pointer[member] // nil while it is down; replaced with Etcd.lifeMu held
}

// Start starts etcd on the data in options.Dir and returns when it can be written to. Another process, or another Etcd
// of this one, that works on that data is an error, and so is another number of nodes that has made it. The caller
// closes it.
func Start(ctx context.Context, options Options) (*Etcd, error) {
	options.Nodes, options.Quota = max(1, options.Nodes), cmp.Or(options.Quota, DefaultQuota)
	if options.Dir == "" {
		return nil, errors.New("start etcd: no data folder given")
	}
	addresses, err := checkNodes(options.Dir, options.Nodes)
	if err != nil {
		return nil, err
	}
	e := &Etcd{options: options, trouble: newTrouble(options.Dir)}
	if err := e.makeNodes(addresses); err != nil {
		return nil, err
	}
	if err = e.startAll(ctx); err == nil {
		e.client, err = e.newClient()
	}
	if err != nil {
		e.stopAll()
		return nil, err
	}
	return e, nil
}

// makeNodes gives several nodes names, addresses if they have none, and a certificate; one needs none of these.
func (e *Etcd) makeNodes(addresses []string) (err error) {
	if e.options.Nodes == 1 {
		e.names, e.nodes = []string{"listwatch"}, []*node{{name: "listwatch", dir: e.options.Dir}}
		return nil
	}
	if addresses == nil {
		if addresses, err = newAddresses(e.options.Dir, e.options.Nodes); err != nil {
			return err
		}
	}
	for i := range e.options.Nodes {
		name := fmt.Sprintf("etcd-%d", i+1)
		dir := filepath.Join(e.options.Dir, name)
		e.nodes = append(e.nodes, &node{name: name, dir: dir, peers: addresses[2*i], clients: addresses[2*i+1]})
		e.names, e.endpoints = append(e.names, name), append(e.endpoints, "https://"+addresses[2*i+1])
	}
	if e.files, err = newCertificate(e.options.Dir); err == nil {
		e.serverTLS, err = e.files.info().ServerConfig()
	}
	return err
}

// newClient returns a client that reaches a lone node in memory, and others by their addresses.
func (e *Etcd) newClient() (*clientv3.Client, error) {
	if len(e.nodes) == 1 {
		return connect(clientv3.Config{Endpoints: []string{"passthrough:///etcd"}},
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(e.nodes[0].dial))
	}
	return dialTLS(e.Endpoints(), e.files)
}

// Client returns the etcd's one client. It survives restarts, goes on to another node when one is gone, and is closed
// with the etcd.
func (e *Etcd) Client() *clientv3.Client { return e.client }

// Broken is closed when a node cannot go on; then Err says why, and Close is all that is left to do.
func (e *Etcd) Broken() <-chan struct{} { return e.trouble.broken.Done() }

// Err returns why a node cannot go on, and what to do about it; nil as long as all can.
func (e *Etcd) Err() error { return e.trouble.err() }

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

func (e *Etcd) start(ctx context.Context, n *node) error {
	if n.member.Load() != nil {
		return nil
	}
	if err := checkUnused(n.dir); err != nil {
		return err
	}
	m := &member{node: n, trouble: e.trouble, tls: e.serverTLS}
	if err := m.start(ctx, e.config(n)); err != nil {
		return err
	}
	n.member.Store(m)
	return nil
}

func (e *Etcd) stopAll() {
	for _, n := range e.nodes {
		n.stop()
	}
}

// stop takes the member away first: stopping it ends connections, and their client comes back at once.
func (n *node) stop() {
	if m := n.member.Swap(nil); m != nil {
		m.stop()
	}
}

// dial connects the client of a lone node to its member of the moment.
func (n *node) dial(ctx context.Context, _ string) (net.Conn, error) {
	m := n.member.Load()
	if m == nil {
		return nil, errors.New("etcd is down")
	}
	return m.pipe.DialContext(ctx)
}

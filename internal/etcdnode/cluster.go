package etcdnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"listwatch/internal/routine"
)

const (
	// A follower that hears nothing for an election timeout, or up to twice that, asks to lead.
	clusterTick     = 50 * time.Millisecond
	clusterElection = 10 // ticks

	pingsAllowed = 5 * time.Second // a client may ask as often whether its connection is alive
)

// NoNodeError says that a cluster has no node of that name.
type NoNodeError struct{ Name string }

func (e *NoNodeError) Error() string { return fmt.Sprintf("there is no etcd node %q", e.Name) }

// Cluster is an etcd of several members in this process, each with its own folder. They talk to each other, and to their
// clients, over loopback, and both sides show certificates that were made for this run.
type Cluster struct {
	// Set by StartCluster, never changed.
	options  Options
	identity *identity
	trouble  *trouble
	client   *clientv3.Client
	nodes    []*clusterNode
	cancel   context.CancelFunc // ends watchFolders
	group    routine.Group

	lifeMu sync.Mutex // held while a node is started or stopped, and by Close
	closed bool       // guarded by lifeMu
}

// clusterNode is one place for a member.
type clusterNode struct {
	// Set by StartCluster, never changed.
	name           string
	peers, clients string // addresses

	running atomic.Bool

	member *member // nil while it is stopped; guarded by Cluster.lifeMu
}

// StartCluster starts n members below options.Dir and returns when they can be written to.
func StartCluster(ctx context.Context, n int, options Options) (*Cluster, error) {
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for etcd's data: %w", err)
	}
	if err := checkSpace(options.Dir); err != nil {
		return nil, err
	}
	identity, err := newIdentity(options.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, identity: identity, trouble: newTrouble(options.Dir)}
	if err := c.findAddresses(n); err != nil {
		return nil, err
	}
	started := make(chan error, n) // sent once for each node
	for _, node := range c.nodes {
		go func() { started <- c.start(ctx, node) }() // together: the first cannot be written to before the second
	}
	var failed error
	for range c.nodes {
		failed = errors.Join(failed, <-started)
	}
	if failed == nil {
		c.client, failed = dialTLS(c.Endpoints(), identity.tls)
	}
	if failed != nil {
		return nil, errors.Join(failed, c.stopAll())
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	var dirs []string
	for _, name := range c.Names() {
		dirs = append(dirs, filepath.Join(options.Dir, name))
	}
	c.group.Go(watching, "etcdnode.watchFolders", func(ctx context.Context) { c.trouble.watchFolders(ctx, dirs...) })
	return c, nil
}

// findAddresses gives each node a name and free ports, or those that it had before: the members remember them with the data.
func (c *Cluster) findAddresses(n int) error {
	file := filepath.Join(c.options.Dir, "addresses.json")
	var addresses []string
	text, err := os.ReadFile(file)
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &addresses); err != nil || len(addresses) != 2*n {
			return fmt.Errorf("%s does not hold the addresses of %d etcd nodes: it belongs to another cluster", file, n)
		}
	case errors.Is(err, os.ErrNotExist):
		if addresses, err = freeAddresses(2 * n); err != nil {
			return err
		}
		text, _ = json.Marshal(addresses) // strings always marshal
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return fmt.Errorf("write the addresses of the etcd nodes: %w", err)
		}
	default:
		return err
	}
	for i := range n {
		c.nodes = append(c.nodes, &clusterNode{name: "etcd-" + strconv.Itoa(i+1), peers: addresses[2*i], clients: addresses[2*i+1]})
	}
	return nil
}

// freeAddresses returns addresses of loopback that are free now. They are all held until the last is found.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a port for etcd: %w", err)
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// Client returns the cluster's one client. It goes on to another member when one is gone.
func (c *Cluster) Client() *clientv3.Client { return c.client }

// Broken is closed when a member cannot go on; then Err says why.
func (c *Cluster) Broken() <-chan struct{} { return c.trouble.broken }

// Err returns why a member cannot go on; nil as long as all can.
func (c *Cluster) Err() error { return c.trouble.err() }

// Files are what other programs need to be clients of the cluster.
func (c *Cluster) Files() TLSFiles { return c.identity.files }

// Endpoints are where the members listen for clients, in the order of Names.
func (c *Cluster) Endpoints() []string {
	var all []string
	for _, node := range c.nodes {
		all = append(all, "https://"+node.clients)
	}
	return all
}

// Names are the nodes.
func (c *Cluster) Names() []string {
	var all []string
	for _, node := range c.nodes {
		all = append(all, node.name)
	}
	return all
}

// Running reports whether a node of that name runs.
func (c *Cluster) Running(name string) bool {
	i := slices.Index(c.Names(), name)
	return i >= 0 && c.nodes[i].running.Load()
}

// Run starts a node, or stops it as one that dies: it hands nothing over. What runs already, or is stopped already, stays so.
// Once begun it is done whatever becomes of ctx. The error is a [*NoNodeError], [ErrRestarting] or [ErrClosed] if nothing
// was done.
func (c *Cluster) Run(ctx context.Context, name string, up bool) error {
	i := slices.Index(c.Names(), name)
	if i < 0 {
		return &NoNodeError{name}
	}
	if !c.lifeMu.TryLock() {
		return ErrRestarting
	}
	defer c.lifeMu.Unlock()
	switch node := c.nodes[i]; {
	case c.closed:
		return ErrClosed
	case up && node.member == nil:
		return c.start(context.WithoutCancel(ctx), node)
	case !up && node.member != nil:
		m := node.member
		node.member = nil
		node.running.Store(false)
		return m.stop()
	}
	return nil
}

// Close stops the client and all members. Calling it again does nothing.
func (c *Cluster) Close() error {
	c.lifeMu.Lock()
	defer c.lifeMu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.cancel()
	c.group.Wait()
	return errors.Join(c.client.Close(), c.stopAll())
}

func (c *Cluster) stopAll() (err error) {
	for _, node := range c.nodes {
		if node.member != nil {
			err = errors.Join(err, node.member.stop())
			node.member = nil
		}
	}
	return err
}

// start expects that the node is stopped, and that nothing else starts or stops it.
func (c *Cluster) start(ctx context.Context, node *clusterNode) error {
	cfg := c.config(node)
	if err := checkUnused(cfg.DataDir); err != nil {
		return err
	}
	peers, err := net.Listen("tcp", node.peers)
	if err != nil {
		return fmt.Errorf("start %s: %w", node.name, err)
	}
	clients, err := net.Listen("tcp", node.clients)
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", node.name, err), peers.Close())
	}
	node.member, err = startMember(ctx, cfg, c.trouble, &sockets{peers: peers, clients: clients, identity: c.identity})
	node.running.Store(err == nil)
	return err
}

func (c *Cluster) config(node *clusterNode) config.ServerConfig {
	options := c.options
	options.Dir = filepath.Join(c.options.Dir, node.name)
	cfg := baseConfig(node.name, options, c.trouble.logger())
	cfg.PeerURLs, cfg.ClientURLs = secure(node.peers), secure(node.clients)
	cfg.InitialPeerURLsMap = types.URLsMap{}
	for _, each := range c.nodes {
		cfg.InitialPeerURLsMap[each.name] = secure(each.peers)
	}
	cfg.PeerTLSInfo, cfg.ClientCertAuthEnabled = c.identity.peerTLS(), true
	cfg.TickMs, cfg.ElectionTicks, cfg.PreVote = uint(clusterTick.Milliseconds()), clusterElection, true
	return cfg
}

func secure(address string) types.URLs { return types.URLs{url.URL{Scheme: "https", Host: address}} }

// allowPings lets clients find out within seconds that a member is gone.
func allowPings() grpc.ServerOption {
	return grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAllowed})
}

package pipeline

import (
	"context"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	informer "listwatch/chapters/13-informer"
	controllers "listwatch/chapters/14-controllers"
	"listwatch/internal/probe"
	"listwatch/internal/routine"
)

// The nodes of the toy cluster, and what the client half calls itself on the wire.
var nodes = []string{"node-1", "node-2"}

const (
	userAgent = "listwatch"
	observer  = "observer" // the handler that is always there, and does nothing
)

// ClientConfig says what the client half is made of. Base and Clock are required.
type ClientConfig struct {
	Base         *url.URL     // where the server half is served
	HTTP         *http.Client // its idle connections are closed when Run ends; nil: http.DefaultClient
	Clock        clock.WithTicker
	Probe        *probe.Probe         // nil: off
	Registry     *prometheus.Registry // where what the clients count is shown; nil: nowhere
	FIFO         string               // [informer.FIFOReal] or [informer.FIFODelta]; "": the former
	UseWatchList bool
	Controllers  bool // run the toy scheduler and the toy kubelets
	Demo         bool // make traffic
}

// clientFunc makes a REST client that calls itself name and reports to p.
type clientFunc func(name string, p *probe.Probe) *listwatch.RESTClient

// Client is the client half: one shared informer on all pods with its handlers, the toy controllers, each with a watch of
// its own as if it were another program, and whoever else was asked to watch.
type Client struct {
	// Set by NewClient, never changed.
	wire       *listwatch.WireTap
	newClient  clientFunc
	Lines      *Lines
	Watchers   *Watchers
	Handlers   *Handlers
	http       *http.Client
	informer   *informer.SharedIndexInformer
	scheduler  *controllers.Scheduler        // nil: no controllers
	unfinished *informer.SharedIndexInformer // the scheduler's; nil: no controllers
	kubelets   []*controllers.Kubelet
	namespaces *controllers.NamespaceController // nil: no controllers
	demo       *Demo                            // nil: no traffic
}

// NewClient wires the client half. Nothing runs until [Client.Run].
func NewClient(config ClientConfig) (*Client, error) {
	if config.HTTP == nil {
		config.HTTP = http.DefaultClient
	}
	wire := listwatch.NewWireTap()
	lines := newLines()
	tapped := wire.Tap(config.HTTP)
	sockets := lines.over(&http.Client{Transport: &socketTransport{dial: dialOf(tapped)}})
	config.HTTP = lines.over(tapped)
	var metrics *listwatch.Metrics
	if config.Registry != nil {
		metrics = listwatch.NewMetrics(config.Registry)
	}
	newClient := func(name string, p *probe.Probe) *listwatch.RESTClient {
		return listwatch.NewRESTClient(listwatch.Config{
			Base: config.Base, HTTP: config.HTTP, UserAgent: name, Clock: config.Clock, Probe: p, Metrics: metrics,
			QPS: -1, // one process, loopback: there is nobody to be protected from us
		})
	}
	pods := config.Probe.Resource("pods")
	c := &Client{
		wire:  wire,
		Lines: lines,

		newClient: newClient,
		http:      config.HTTP,
		Watchers: newWatchers(watcherClients{newClient, listwatch.Config{
			Base: config.Base, HTTP: sockets, Clock: config.Clock, Metrics: metrics, QPS: -1,
		}}, config.Clock),
	}
	c.informer = informer.NewSharedIndexInformer(informer.Config{
		Name:          "pods",
		ListerWatcher: listwatch.NewListWatch(newClient(userAgent+"-informer", pods.Subject("informer")), "pods", metav1.NamespaceAll, nil),
		ExampleObject: &corev1.Pod{},
		Indexers:      indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
		Clock:         config.Clock,
		Probe:         pods.Subject("informer"),
		FIFO:          config.FIFO,
		UseWatchList:  config.UseWatchList,
	})
	c.Handlers = newHandlers(c.informer, config.Clock)
	if err := c.Handlers.Add(observer); err != nil {
		return nil, err
	}
	if config.Controllers {
		if err := c.addControllers(config, newClient, pods); err != nil {
			return nil, err
		}
	}
	if config.Demo {
		c.demo = newDemo(newClient(userAgent+"-demo", nil), config.Clock)
	}
	return c, nil
}

// addScheduler makes the toy scheduler and its informer. It does not share the informer of all pods: a pod that has
// ended is none of its business, and its watch says so to the server. To the scheduler such a pod is deleted.
func (c *Client) addScheduler(config ClientConfig, newClient clientFunc, pods *probe.Probe) (err error) {
	const name = "scheduler-informer"
	client := newClient(userAgent+"-scheduler", pods.Subject(name))
	c.unfinished = informer.NewSharedIndexInformer(informer.Config{
		Name:          name,
		ListerWatcher: listwatch.NewListWatch(client, "pods", metav1.NamespaceAll, controllers.SchedulerOptions),
		ExampleObject: &corev1.Pod{},
		Transform:     controllers.StripManagedFields,
		Clock:         config.Clock,
		Probe:         pods.Subject(name),
		FIFO:          config.FIFO,
		UseWatchList:  config.UseWatchList,
	})
	c.scheduler, err = controllers.NewScheduler(controllers.SchedulerConfig{
		Client: client, Informer: c.unfinished, Nodes: nodes, Clock: config.Clock, Probe: pods.Subject("scheduler"),
	})
	return err
}

// addControllers makes the toy scheduler and a kubelet for each node. All of them watch for themselves: a kubelet is not
// interested in anybody else's pods, either.
func (c *Client) addControllers(config ClientConfig, newClient clientFunc, pods *probe.Probe) error {
	if err := c.addScheduler(config, newClient, pods); err != nil {
		return err
	}
	c.namespaces = controllers.NewNamespaceController(controllers.NamespaceControllerConfig{
		Client: newClient(userAgent+"-namespaces", nil), Clock: config.Clock, UseWatchList: config.UseWatchList,
	})
	for _, node := range nodes {
		name := "kubelet-" + node
		c.kubelets = append(c.kubelets, controllers.NewKubelet(controllers.KubeletConfig{
			NodeName: node, Client: newClient(name, nil), Clock: config.Clock,
			Probe: pods.Subject(name), UseWatchList: config.UseWatchList,
		}))
	}
	return nil
}

// NewClient returns one more client of the server half, which calls itself name, on a line of its own, and reports to p.
func (c *Client) NewClient(name string, p *probe.Probe) *listwatch.RESTClient {
	return c.newClient(name, p)
}

// Run runs the client half until ctx is done and everything it started has ended. It is called once.
func (c *Client) Run(ctx context.Context) {
	var group routine.Group
	stopWaking := context.AfterFunc(ctx, c.Handlers.end)
	defer stopWaking()
	group.Go(ctx, "informer", c.informer.Run)
	group.Go(ctx, "watchers", c.Watchers.Run)
	if c.scheduler != nil {
		group.Go(ctx, "informer", c.unfinished.Run)
		group.Go(ctx, "scheduler", c.scheduler.Run)
		group.Go(ctx, "namespaces", c.namespaces.Run)
	}
	for _, kubelet := range c.kubelets {
		group.Go(ctx, "kubelet", kubelet.Run)
	}
	if c.demo != nil {
		group.Go(ctx, "demo", c.demo.Run)
	}
	group.Wait()
	// A connection that was dialled in advance and never used looks to the server as if a request were about to come,
	// and would hold up its end.
	c.http.CloseIdleConnections()
}

// WaitReady returns when every informer's store holds its first state. The error is ctx's.
func (c *Client) WaitReady(ctx context.Context) error {
	synced := []deltafifo.DoneChecker{c.informer.HasSyncedChecker()}
	if c.unfinished != nil {
		synced = append(synced, c.unfinished.HasSyncedChecker())
	}
	if !informer.WaitFor(ctx, synced...) {
		return ctx.Err()
	}
	return nil
}

// ClientSnapshot is the state of the client half.
type ClientSnapshot struct {
	Informer informer.Snapshot `json:"informer"`
	// Unfinished is the scheduler's informer.
	Unfinished *informer.Snapshot             `json:"unfinished,omitempty"`
	Scheduler  *controllers.SchedulerSnapshot `json:"scheduler,omitempty"`
	Kubelets   []controllers.KubeletSnapshot  `json:"kubelets,omitempty"`
}

// Wire returns the open watches of the client half as they are on the wire, chunk by chunk.
func (c *Client) Wire() []listwatch.WireStream { return c.wire.Snapshot() }

// Snapshot returns the state of the informer and the controllers.
func (c *Client) Snapshot() ClientSnapshot {
	snapshot := ClientSnapshot{Informer: c.informer.Snapshot()}
	if c.scheduler != nil {
		scheduler, unfinished := c.scheduler.Snapshot(), c.unfinished.Snapshot()
		snapshot.Scheduler, snapshot.Unfinished = &scheduler, &unfinished
	}
	for _, kubelet := range c.kubelets {
		snapshot.Kubelets = append(snapshot.Kubelets, kubelet.Snapshot())
	}
	return snapshot
}

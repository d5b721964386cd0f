package pipeline

import (
	"context"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	informer "listwatch/chapters/13-informer"
	controllers "listwatch/chapters/14-controllers"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// The nodes of the toy cluster.
var nodes = []string{"node-1", "node-2"}

// userAgent is what the informers' client calls itself on the wire; the others have it in front of their names.
const userAgent = "listwatch"

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
}

// Client is the client half: one shared informer on all pods, and the toy controllers, each with a watch of its own as
// if it were another program.
type Client struct {
	// Set by NewClient, never changed.
	config     ClientConfig
	metrics    *listwatch.Metrics // nil: nothing is counted
	informers  *informer.SharedInformerFactory
	unfinished *informer.SharedInformerFactory // the scheduler's; nil: no controllers
	scheduler  *controllers.Scheduler          // nil: no controllers
	kubelets   []*controllers.Kubelet
	namespaces *controllers.NamespaceController // nil: no controllers
}

// NewClient wires the client half. Nothing runs until [Client.Run].
func NewClient(config ClientConfig) (*Client, error) {
	if config.HTTP == nil {
		config.HTTP = http.DefaultClient
	}
	c := &Client{config: config}
	if config.Registry != nil {
		c.metrics = listwatch.NewMetrics(config.Registry)
	}
	c.informers = c.newFactory("informer", userAgent+"-informer", informer.FactoryConfig{})
	c.Pods() // asked for: the factory starts it
	if config.Controllers {
		if err := c.addControllers(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// newFactory returns a factory whose informers appear as subject, with a client of their own
// that calls itself name.
func (c *Client) newFactory(subject, name string,
	config informer.FactoryConfig) *informer.SharedInformerFactory {
	config.Probe = c.config.Probe.Subject(subject)
	config.Client = c.NewClient(name, config.Probe.Resource("pods"), nil)
	config.Clock = c.config.Clock
	config.Transform = controllers.StripManagedFields
	config.FIFO = c.config.FIFO
	config.UseWatchList = c.config.UseWatchList
	return informer.NewSharedInformerFactory(config)
}

// Pods returns the informer of all pods.
func (c *Client) Pods() informer.TypedInformer[*corev1.Pod] { return c.informers.Pods() }

// addScheduler makes the toy scheduler and its informer. It does not share the informer of all
// pods: the scheduler has no use for a pod that has ended, and its watch says so to the server.
// To the scheduler such a pod is deleted. A selector of its own is a factory of its own.
func (c *Client) addScheduler() (err error) {
	const name = userAgent + "-scheduler"
	c.unfinished = c.newFactory("scheduler-informer", name, informer.FactoryConfig{
		TweakListOptions: controllers.SchedulerOptions})
	c.scheduler, err = controllers.NewScheduler(controllers.SchedulerConfig{
		Client: c.NewClient(name, nil, nil), Pods: c.unfinished.Pods(), Nodes: nodes,
		Clock: c.config.Clock, Probe: c.config.Probe.Resource("pods").Subject("scheduler"),
	})
	return err
}

// addControllers makes the toy scheduler, a kubelet for each node and the controller of
// namespaces. All of them watch for themselves: a kubelet wants the pods of its own node and no
// others.
func (c *Client) addControllers() error {
	if err := c.addScheduler(); err != nil {
		return err
	}
	config := &c.config
	c.namespaces = controllers.NewNamespaceController(controllers.NamespaceControllerConfig{
		Client: c.NewClient(userAgent+"-namespaces", nil, nil), Clock: config.Clock,
		UseWatchList: config.UseWatchList,
	})
	for _, node := range nodes {
		name := "kubelet-" + node
		c.kubelets = append(c.kubelets, controllers.NewKubelet(controllers.KubeletConfig{
			NodeName: node, Client: c.NewClient(name, nil, nil), Clock: config.Clock,
			Probe:        config.Probe.Resource("pods").Subject(name),
			UseWatchList: config.UseWatchList,
			Transform:    controllers.StripManagedFields,
		}))
	}
	return nil
}

// NewClient returns one more client of the server half, which calls itself name and reports to p. over is how it
// reaches the server; nil: as the client half does.
func (c *Client) NewClient(name string, p *probe.Probe, over *http.Client) *listwatch.RESTClient {
	if over == nil {
		over = c.config.HTTP
	}
	return listwatch.NewRESTClient(listwatch.Config{
		Base: c.config.Base, HTTP: over, UserAgent: name, Clock: c.config.Clock, Probe: p, Metrics: c.metrics,
		QPS: -1, // one process, loopback: the server needs no protection from us
	})
}

// Run runs the client half until ctx is done and everything it started has ended. It is called once.
func (c *Client) Run(ctx context.Context) {
	var group routine.Group
	c.informers.Start(ctx)
	if c.scheduler != nil {
		c.unfinished.Start(ctx)
		group.Go(ctx, "scheduler", c.scheduler.Run)
		group.Go(ctx, "namespaces", c.namespaces.Run)
	}
	for _, kubelet := range c.kubelets {
		group.Go(ctx, "kubelet", kubelet.Run)
	}
	<-ctx.Done()
	group.Wait()
	c.informers.Shutdown()
	if c.unfinished != nil {
		c.unfinished.Shutdown()
	}
	// A connection that was dialled in advance and never used looks to the server as if a request were about to come,
	// and would hold up its end.
	c.config.HTTP.CloseIdleConnections()
}

// WaitReady returns when every informer's store holds its first state. The error is ctx's.
func (c *Client) WaitReady(ctx context.Context) error {
	synced := []deltafifo.DoneChecker{c.Pods().Informer().HasSyncedChecker()}
	if c.unfinished != nil {
		synced = append(synced, c.unfinished.Pods().Informer().HasSyncedChecker())
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

// Snapshot returns the state of the informer and the controllers.
func (c *Client) Snapshot() ClientSnapshot {
	snapshot := ClientSnapshot{Informer: c.Pods().Informer().Snapshot()}
	if c.scheduler != nil {
		scheduler, unfinished := c.scheduler.Snapshot(), c.unfinished.Pods().Informer().Snapshot()
		snapshot.Scheduler, snapshot.Unfinished = &scheduler, &unfinished
	}
	for _, kubelet := range c.kubelets {
		snapshot.Kubelets = append(snapshot.Kubelets, kubelet.Snapshot())
	}
	return snapshot
}

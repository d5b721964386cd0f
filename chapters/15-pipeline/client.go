package pipeline

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	informer "listwatch/chapters/13-informer"
	controllers "listwatch/chapters/14-controllers"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// Controllers are the names of all controllers that a client half can run, upstream's where there is one.
var Controllers = []string{"kube-scheduler", "kubelet", "namespace-controller", "replicaset-controller",
	"deployment-controller", "garbage-collector-controller"}

// The nodes that have a toy kubelet.
var nodes = []string{"node-1", "node-2"}

// userAgent is the User-Agent of the informers' client; those of the others begin with it.
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
	Controllers  []string // those of [Controllers] that run
	Events       bool     // they write events; off where every version is counted
}

// Client is the client half: one shared informer on all pods, and the toy controllers, each with a watch of its own as
// if it were another program.
type Client struct {
	// Set by NewClient, never changed.
	config           ClientConfig
	metrics          *listwatch.Metrics // nil: nothing is counted
	factories        []*informer.SharedInformerFactory
	synced           []<-chan struct{}                   // of every informer
	pods, unfinished informer.TypedInformer[*corev1.Pod] // the latter is the scheduler's
	scheduler        *controllers.Scheduler              // nil: there is none
	apps             *informer.SharedInformerFactory     // for deployments and replica sets
	recorder         *controllers.EventRecorder          // nil: no events are written
	programs         []program
}

// program is a controller, or what writes events for all of them.
type program interface{ Run(ctx context.Context) }

// NewClient wires the client half. Nothing runs until [Client.Run].
func NewClient(config ClientConfig) (*Client, error) {
	config.HTTP = cmp.Or(config.HTTP, http.DefaultClient)
	c := &Client{config: config}
	if config.Registry != nil {
		c.metrics = listwatch.NewMetrics(config.Registry)
	}
	c.pods = c.newFactory("informer", userAgent+"-informer", nil).Pods()
	c.synced = append(c.synced, c.pods.Informer().HasSyncedChecker())
	c.apps = c.factoryOf(c.NewClient(userAgent+"-controllers", nil).WithAPIPath("/apis/apps/v1"), nil, nil)
	if config.Events && len(config.Controllers) > 0 {
		c.recorder = controllers.NewEventRecorder(c.NewClient(userAgent+"-events", nil), config.Clock)
		c.programs = append(c.programs, c.recorder)
	}
	for _, name := range config.Controllers {
		if err := c.addController(name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// newFactory returns a factory whose informers report as a subject, with a client of their own
// that calls itself name. [Client.Run] starts it. tweak may be nil.
func (c *Client) newFactory(subject, name string, tweak func(*metav1.ListOptions)) *informer.SharedInformerFactory {
	p := c.config.Probe.Subject(subject)
	return c.factoryOf(c.NewClient(name, p.Resource("pods")), p, tweak)
}

// factoryOf is newFactory for a client that there is already. p may be nil.
func (c *Client) factoryOf(client *listwatch.RESTClient, p *probe.Probe,
	tweak func(*metav1.ListOptions)) *informer.SharedInformerFactory {
	factory := informer.NewSharedInformerFactory(informer.FactoryConfig{
		Client: client, Clock: c.config.Clock, Probe: p,
		Transform: controllers.StripManagedFields, TweakListOptions: tweak,
		FIFO: c.config.FIFO, UseWatchList: c.config.UseWatchList,
	})
	c.factories = append(c.factories, factory)
	return factory
}

// Pods returns the informer of all pods.
func (c *Client) Pods() informer.TypedInformer[*corev1.Pod] { return c.pods }

// addController makes one of [Controllers]. The scheduler and the kubelets watch for themselves: a
// kubelet wants the pods of its own node and no others. Those that upstream's kube-controller-manager
// runs together share informers; a factory runs each that was asked for.
func (c *Client) addController(name string) error {
	client, clk := c.NewClient(userAgent+"-controllers", nil), c.config.Clock
	workloads := func() controllers.WorkloadConfig {
		return controllers.WorkloadConfig{Client: client, Apps: client.WithAPIPath("/apis/apps/v1"),
			Deployments: c.apps.Deployments(), ReplicaSets: c.apps.ReplicaSets(), Pods: c.pods, Recorder: c.recorder,
			Clock: clk}
	}
	var made program
	var err error
	switch name {
	case "kube-scheduler":
		c.scheduler, err = c.newScheduler()
		made = c.scheduler
	case "kubelet":
		c.addKubelets()
		return nil
	case "namespace-controller":
		client = c.NewClient(userAgent+"-namespaces", nil)
		made = controllers.NewNamespaceController(client, c.factoryOf(client, nil, nil).Namespaces(), clk)
	case "replicaset-controller":
		made = controllers.NewReplicaSetController(workloads())
	case "deployment-controller":
		made = controllers.NewDeploymentController(workloads())
	case "garbage-collector-controller":
		made = controllers.NewGarbageCollector(controllers.GarbageCollectorConfig{
			Client: client, Clock: clk, UseWatchList: c.config.UseWatchList,
			Shared: map[string]*informer.SharedIndexInformer{
				"v1/Pod":             c.pods.Informer(),
				"apps/v1/Deployment": c.apps.Deployments().Informer(),
				"apps/v1/ReplicaSet": c.apps.ReplicaSets().Informer(),
			}})
	}
	c.programs = append(c.programs, made)
	return err
}

// newScheduler makes the toy scheduler and its informers. It does not share the informer of all
// pods: the scheduler has no use for a pod that has ended, and its watch says so to the server.
// To the scheduler such a pod is deleted. A selector of its own is a factory of its own. The
// informer of nodes reports nothing: the picture is of the way of pods.
func (c *Client) newScheduler() (*controllers.Scheduler, error) {
	client := c.NewClient(userAgent+"-scheduler", nil)
	c.unfinished = c.newFactory("scheduler-informer", userAgent+"-scheduler",
		controllers.SchedulerOptions).Pods()
	nodes := c.factoryOf(client, nil, nil).Nodes()
	c.synced = append(c.synced, c.unfinished.Informer().HasSyncedChecker(),
		nodes.Informer().HasSyncedChecker())
	return controllers.NewScheduler(controllers.SchedulerConfig{
		Client: client, Pods: c.unfinished, Nodes: nodes, Recorder: c.recorder,
		Clock: c.config.Clock, Probe: c.config.Probe.Resource("pods").Subject("scheduler"),
	})
}

// addKubelets makes a kubelet for each node.
func (c *Client) addKubelets() {
	for _, node := range nodes {
		name := "kubelet-" + node
		p := c.config.Probe.Resource("pods").Subject(name)
		c.programs = append(c.programs, controllers.NewKubelet(controllers.KubeletConfig{
			NodeName: node, Client: c.NewClient(name, p), Clock: c.config.Clock, Recorder: c.recorder, Probe: p,
			UseWatchList: c.config.UseWatchList,
		}))
	}
}

// NewClient returns one more client of the server half, which calls itself name and reports to p.
func (c *Client) NewClient(name string, p *probe.Probe) *listwatch.RESTClient {
	return listwatch.NewRESTClient(listwatch.Config{
		Base: c.config.Base, HTTP: c.config.HTTP, UserAgent: name, Clock: c.config.Clock, Probe: p, Metrics: c.metrics,
		QPS: -1, // one process, loopback: the server needs no protection from us
	})
}

// Run runs the client half until ctx is done and everything it started has ended. It is called once.
func (c *Client) Run(ctx context.Context) {
	var group routine.Group
	for _, factory := range c.factories {
		factory.Start(ctx)
	}
	for _, each := range c.programs {
		group.Go(ctx, "pipeline.controller", each.Run)
	}
	<-ctx.Done()
	group.Wait()
	for _, factory := range c.factories {
		factory.Shutdown()
	}
	// A connection that was dialled in advance and never used looks to the server as if a request were about to come,
	// and would hold up its end.
	c.config.HTTP.CloseIdleConnections()
}

// WaitReady returns when every informer's store holds its first state. The error is ctx's.
func (c *Client) WaitReady(ctx context.Context) error {
	if !informer.WaitFor(ctx, c.synced...) {
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
}

// Snapshot returns the state of the informer and the controllers.
func (c *Client) Snapshot() ClientSnapshot {
	snapshot := ClientSnapshot{Informer: c.pods.Informer().Snapshot()}
	if c.scheduler != nil {
		scheduler, unfinished := c.scheduler.Snapshot(), c.unfinished.Informer().Snapshot()
		snapshot.Scheduler, snapshot.Unfinished = &scheduler, &unfinished
	}
	return snapshot
}

package pipeline

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

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
	scheduler        *controllers.Scheduler              // nil: no controllers
	programs         []program
}

// program is a controller, or what writes events for all of them.
type program struct {
	name string
	run  func(ctx context.Context)
}

// NewClient wires the client half. Nothing runs until [Client.Run].
func NewClient(config ClientConfig) (*Client, error) {
	config.HTTP = cmp.Or(config.HTTP, http.DefaultClient)
	c := &Client{config: config}
	if config.Registry != nil {
		c.metrics = listwatch.NewMetrics(config.Registry)
	}
	c.pods = c.newFactory(config.Probe.Subject("informer"), userAgent+"-informer", nil).Pods()
	c.synced = append(c.synced, c.pods.Informer().HasSyncedChecker())
	return c, c.addControllers()
}

// newFactory returns a factory whose informers report to p, with a client of their own that
// calls itself name. [Client.Run] starts it. tweak may be nil.
func (c *Client) newFactory(p *probe.Probe, name string,
	tweak func(*metav1.ListOptions)) *informer.SharedInformerFactory {
	return c.factoryOf(c.NewClient(name, p.Resource("pods")), p, tweak)
}

// factoryOf is newFactory for a client that there is already.
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

// addScheduler makes the toy scheduler and its informers. It does not share the informer of all
// pods: the scheduler has no use for a pod that has ended, and its watch says so to the server.
// To the scheduler such a pod is deleted. A selector of its own is a factory of its own. The
// informer of nodes reports nothing: the picture is of the way of pods.
func (c *Client) addScheduler(recorder *controllers.EventRecorder) (err error) {
	const name = userAgent + "-scheduler"
	p := c.config.Probe
	c.unfinished = c.newFactory(p.Subject("scheduler-informer"), name,
		controllers.SchedulerOptions).Pods()
	nodes := c.newFactory(nil, name, nil).Nodes()
	c.synced = append(c.synced, c.unfinished.Informer().HasSyncedChecker(),
		nodes.Informer().HasSyncedChecker())
	c.scheduler, err = controllers.NewScheduler(controllers.SchedulerConfig{
		Client: c.NewClient(name, nil), Pods: c.unfinished, Nodes: nodes,
		Recorder: recorder, Clock: c.config.Clock,
		Probe: p.Resource("pods").Subject("scheduler"),
	})
	return err
}

// addControllers makes those that are asked for. The scheduler and the kubelets watch for
// themselves: a kubelet wants the pods of its own node and no others. Those that upstream's
// kube-controller-manager runs together share the informers of the process.
func (c *Client) addControllers() error {
	config := &c.config
	runs := func(name string) bool { return slices.Contains(config.Controllers, name) }
	var recorder *controllers.EventRecorder
	if config.Events && len(config.Controllers) > 0 {
		recorder = controllers.NewEventRecorder(c.NewClient(userAgent+"-events", nil),
			config.Clock)
		c.programs = append(c.programs, program{"events", recorder.Run})
	}
	if runs("kube-scheduler") {
		if err := c.addScheduler(recorder); err != nil {
			return err
		}
		c.programs = append(c.programs, program{"scheduler", c.scheduler.Run})
	}
	if runs("namespace-controller") {
		namespaces := controllers.NewNamespaceController(
			c.NewClient(userAgent+"-namespaces", nil), config.Clock, config.UseWatchList)
		c.programs = append(c.programs, program{"namespaces", namespaces.Run})
	}
	if runs("kubelet") {
		c.addKubelets(recorder)
	}
	return c.addWorkloads(runs, recorder)
}

// addKubelets makes a kubelet for each node.
func (c *Client) addKubelets(recorder *controllers.EventRecorder) {
	for _, node := range nodes {
		name := "kubelet-" + node
		kubelet := controllers.NewKubelet(controllers.KubeletConfig{
			NodeName: node, Client: c.NewClient(name, nil), Clock: c.config.Clock,
			Probe:        c.config.Probe.Resource("pods").Subject(name),
			UseWatchList: c.config.UseWatchList,
			Recorder:     recorder,
		})
		c.programs = append(c.programs, program{"kubelet", kubelet.Run})
	}
}

// addWorkloads makes the controllers of replica sets and deployments. Pods they know from the
// informer of all pods. They report nothing: the picture is of the way of pods.
func (c *Client) addWorkloads(runs func(name string) bool, recorder *controllers.EventRecorder) error {
	const name = userAgent + "-controllers"
	client := c.NewClient(name, nil)
	apps := c.factoryOf(client.WithAPIPath("/apis/apps/v1"), nil, nil)
	config := func() controllers.WorkloadConfig { // a factory runs each informer that was named
		return controllers.WorkloadConfig{Client: client, Deployments: apps.Deployments(),
			ReplicaSets: apps.ReplicaSets(), Pods: c.pods, Recorder: recorder, Clock: c.config.Clock}
	}
	if runs("replicaset-controller") {
		sets, err := controllers.NewReplicaSetController(config())
		if err != nil {
			return err
		}
		c.programs = append(c.programs, program{"replicaset", sets.Run})
	}
	if runs("deployment-controller") {
		deployments, err := controllers.NewDeploymentController(config())
		if err != nil {
			return err
		}
		c.programs = append(c.programs, program{"deployment", deployments.Run})
	}
	if runs("garbage-collector-controller") {
		collector := controllers.NewGarbageCollector(controllers.GarbageCollectorConfig{
			Client: client, Clock: c.config.Clock, UseWatchList: c.config.UseWatchList,
			Shared: map[string]*informer.SharedIndexInformer{
				"v1/Pod":             c.pods.Informer(),
				"apps/v1/Deployment": apps.Deployments().Informer(),
				"apps/v1/ReplicaSet": apps.ReplicaSets().Informer(),
			}})
		c.programs = append(c.programs, program{"garbagecollector", collector.Run})
	}
	return nil
}

// NewClient returns one more client of the server half, which calls itself name and reports to p.
func (c *Client) NewClient(name string, p *probe.Probe) *listwatch.RESTClient {
	return listwatch.NewRESTClient(listwatch.Config{
		Base: c.config.Base, HTTP: c.config.HTTP, UserAgent: name, Clock: c.config.Clock, Probe: p,
		Metrics: c.metrics,
		QPS:     -1, // one process, loopback: the server needs no protection from us
	})
}

// Run runs the client half until ctx is done and everything it started has ended. It is called once.
func (c *Client) Run(ctx context.Context) {
	var group routine.Group
	for _, factory := range c.factories {
		factory.Start(ctx)
	}
	for _, each := range c.programs {
		group.Go(ctx, each.name, each.run)
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

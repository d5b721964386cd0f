// Package otherserver runs our client half on another server, such as one behind kubectl proxy. A [Guest] never writes
// to the server. It owns the informers, which keep little more than names and versions.
//
// Differs: upstream has nothing comparable.
package otherserver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"runtime/metrics"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

const (
	maxChosen  = 8       // maximum number of resources in a Choice
	maxObjects = 150_000 // the default of Config.MaxObjects
)

// Choice selects the resources and objects that a guest watches.
type Choice struct {
	Resources []string `json:"resources"` // "pods"; with a group, as kubectl names it: "deployments.v1.apps"
	Namespace string   `json:"namespace"` // "": all namespaces
	Labels    string   `json:"labels"`
	Fields    string   `json:"fields"`
}

// resourceName matches a resource of core/v1, or one with its version and group.
var resourceName = regexp.MustCompile(`^([a-z][a-z0-9-]*)(?:\.(v[a-z0-9]+)\.([a-z0-9.-]+))?$`)

// resource is a chosen resource: its name in the Choice, its plural, and the API path of its group and version.
type resource struct{ name, plural, path string }

// Check returns a 400 for a malformed choice. It does not check whether the server has the resources.
func (c *Choice) Check() error {
	_, err := c.read()
	return err
}

func (c *Choice) read() (all []resource, err error) {
	if len(c.Resources) == 0 || len(c.Resources) > maxChosen {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("choose 1 to %d resources", maxChosen))
	}
	for _, name := range c.Resources {
		words := resourceName.FindStringSubmatch(name)
		if words == nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%.100q: want a name such as pods or deployments.v1.apps; "+
				"kubectl api-resources lists them", name))
		}
		chosen := resource{name, words[1], "/api/v1"}
		if words[2] != "" {
			chosen.path = "/apis/" + words[3] + "/" + words[2]
		}
		if slices.ContainsFunc(all, func(each resource) bool { return each.plural == chosen.plural }) {
			return nil, apierrors.NewBadRequest(
				fmt.Sprintf("%q has the same name as another on the stage: choose one of them", name))
		}
		all = append(all, chosen)
	}
	return all, nil
}

// Config describes a [Guest]. Servers, Choice and Clock are required.
type Config struct {
	Servers      []*url.URL // the addresses of one server
	Choice       Choice
	Clock        clock.WithTicker
	Probe        *probe.Probe
	FIFO         string
	UseWatchList bool
	MaxObjects   int64 // maximum number of objects of a resource; one more stops its informer; 0: 150,000
}

// Guest is our client half on another server: an informer of metadata for each chosen resource. The guest also reads
// the server's metrics.
type Guest struct {
	// Set by New, never changed.
	config    Config
	transport *Transport // for the informers and for metrics
	watched   []*watched

	metrics atomic.Pointer[Metrics] // replaced by askMetrics; a Metrics never changes
}

// New returns a guest. It starts nothing. The error is from [Choice.Check].
func New(config Config) (*Guest, error) {
	config.MaxObjects = cmp.Or(config.MaxObjects, maxObjects)
	g := &Guest{config: config, transport: NewTransport(config.Servers)}
	g.transport.ResponseHeaderTimeout = answerTimeout
	g.metrics.Store(&Metrics{Metrics: figures{}})
	resources, err := config.Choice.read()
	if err != nil {
		return nil, err
	}
	for _, each := range resources {
		g.add(each)
	}
	return g, nil
}

// add adds the informer of a resource, with a handler that counts its objects and stops it above the maximum.
func (g *Guest) add(r resource) {
	w := &watched{guest: g, resource: r}
	p := g.config.Probe.Subject("informer").Resource(r.plural)
	client := listwatch.NewRESTClient(listwatch.Config{
		Base: g.config.Servers[0], HTTP: &http.Client{Transport: w, CheckRedirect: stay},
		UserAgent: "listwatch-guest", Clock: g.config.Clock, Probe: p, APIPath: r.path, Decoder: w,
	})
	w.informer = informer.NewSharedIndexInformer(informer.Config{
		Name: r.plural, ListerWatcher: client.ListWatch(r.plural, g.config.Choice.Namespace, g.narrow),
		ExampleObject: &metav1.PartialObjectMetadata{},
		Indexers:      indexer.Indexers{indexer.NamespaceIndex: indexer.MetaNamespaceIndexFunc},
		Clock:         g.config.Clock, Probe: p, FIFO: g.config.FIFO, UseWatchList: g.config.UseWatchList,
		WatchErrorHandler: w.failed,
	})
	count := processor.ResourceEventHandlerFuncs{DeleteFunc: func(any) { w.objects.Add(-1) }, AddFunc: func(any) {
		if w.objects.Add(1) > g.config.MaxObjects {
			_ = w.exceed()
		}
	}}
	// The only possible error is that the informer has stopped, and this one has not started.
	_, _ = w.informer.AddEventHandlerWithOptions(count, informer.HandlerOptions{Name: "observer"})
	g.watched = append(g.watched, w)
}

func (g *Guest) narrow(options *metav1.ListOptions) {
	options.LabelSelector, options.FieldSelector = g.config.Choice.Labels, g.config.Choice.Fields
}

// Run runs the informers, and reads the metrics every five seconds of wall time, until ctx is done.
func (g *Guest) Run(ctx context.Context) {
	var group routine.Group
	for _, w := range g.watched {
		group.Go(ctx, "guest.watch", w.run)
	}
	g.askMetrics(ctx)
	routine.Every(ctx, clock.RealClock{}, metricsPeriod, g.askMetrics)
	group.Wait()
	g.transport.CloseIdleConnections()
}

// run runs one informer until ctx is done or the server's data exceeds a limit.
func (w *watched) run(ctx context.Context) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w.stop = stop
	w.informer.Run(watching)
}

// Recount makes a resource's informer report its objects if subject is "informer" and there are at most limit of them.
func (g *Guest) Recount(resource, subject string, limit int) {
	for _, w := range g.watched {
		if subject == "informer" && w.resource.plural == resource {
			w.informer.GetIndexer().Recount(limit)
		}
	}
}

// Snapshot returns the states of the informers, by resource.
func (g *Guest) Snapshot() map[string]informer.Snapshot {
	snapshots := map[string]informer.Snapshot{}
	for _, w := range g.watched {
		snapshots[w.resource.name] = w.informer.Snapshot()
	}
	return snapshots
}

// State is the state of a guest.
type State struct {
	Server  string         `json:"server"` // the preferred address
	Choice  Choice         `json:"choice"`
	Watched []WatchedState `json:"watched"`
	Memory  uint64         `json:"memory"` // bytes of the program's heap
	Metrics                // the newest metrics; empty before the first; never changed
}

// WatchedState is the state of one resource.
type WatchedState struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Objects  int64  `json:"objects"`
	Trouble  string `json:"trouble"` // a problem, with advice; "": none
}

// State returns the state of the guest.
func (g *Guest) State() State {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	state := State{Server: g.transport.Server().String(), Choice: g.config.Choice,
		Watched: []WatchedState{}, Memory: sample[0].Value.Uint64(), Metrics: *g.metrics.Load()}
	for _, w := range g.watched {
		state.Watched = append(state.Watched, WatchedState{
			Resource: w.resource.name, Synced: w.informer.HasSynced(), Objects: w.objects.Load(), Trouble: w.said(),
		})
	}
	return state
}

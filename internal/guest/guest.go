package guest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/metrics"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/probe"
	"listwatch/internal/routine"
)

// What asks for the metadata of objects only, in a list and one by one: a cluster is large, and the stage shows names and versions.
const (
	listOfMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataOnly   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// metadataDecoder reads such answers, and Statuses.
var metadataDecoder = newMetadataDecoder()

func newMetadataDecoder() runtime.Decoder {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(known))
	info, ok := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(known).SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		panic("guest: the scheme does not know JSON")
	}
	return info.Serializer
}

// Bounds of what a guest watches.
const (
	maxChosen  = 8       // resources
	maxObjects = 150_000 // of one resource; more of them are not watched
)

// Choice is what a guest watches.
type Choice struct {
	Resources []string `json:"resources"` // "pods", "deployments.apps"
	Namespace string   `json:"namespace"` // "": all
	Labels    string   `json:"labels"`
	Fields    string   `json:"fields"`
}

// GuestConfig describes a [Guest]. All but Probe are required.
type GuestConfig struct {
	Servers      []*url.URL
	Choice       Choice
	Resources    []Resource // of Choice, as [Discovery.Find] has found them
	Clock        clock.WithTicker
	Probe        *probe.Probe
	FIFO         string
	UseWatchList bool
}

// Guest is a client half of ours on a server that is not ours: an informer of metadata for each resource that was chosen.
type Guest struct {
	// Set by NewGuest, never changed.
	config  GuestConfig
	client  *http.Client
	watched []*watchedResource
}

// watchedResource is one informer.
type watchedResource struct {
	resource Resource
	informer *informer.SharedIndexInformer
	factory  *informer.SharedInformerFactory
	trouble  *trouble

	objects atomic.Int64
	full    chan struct{} // closed by the handler when there are too many objects; nothing is sent
}

var _ processor.ResourceEventHandler = (*watchedResource)(nil)

// NewGuest returns a guest. It starts nothing.
func NewGuest(config GuestConfig) (*Guest, error) {
	g := &Guest{config: config, client: newClient(config.Servers)}
	for _, resource := range config.Resources {
		if err := g.add(resource); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// add makes an informer.
func (g *Guest) add(resource Resource) error {
	w := &watchedResource{resource: resource, full: make(chan struct{})}
	w.trouble = &trouble{next: g.client.Transport, resource: resource.Name, namespace: g.config.Choice.Namespace}
	p := g.config.Probe.Subject("informer")
	client := listwatch.NewRESTClient(listwatch.Config{
		Base: g.config.Servers[0], HTTP: &http.Client{Transport: w.trouble, CheckRedirect: stay}, UserAgent: "listwatch-guest",
		Clock: g.config.Clock, Probe: p.Resource(resource.plural()), APIPath: resource.Path, Decoder: metadataDecoder,
	})
	w.factory = informer.NewSharedInformerFactory(informer.FactoryConfig{
		Client: client, Clock: g.config.Clock, Probe: p, Namespace: g.config.Choice.Namespace, TweakListOptions: g.narrow,
		Transform: onlyNames, FIFO: g.config.FIFO, UseWatchList: g.config.UseWatchList,
	})
	w.informer = w.factory.ForResource(resource.plural(), resource.Namespaced).Informer()
	if _, err := w.informer.AddEventHandlerWithOptions(w, informer.HandlerOptions{Name: "observer"}); err != nil {
		return fmt.Errorf("watch %s: %w", resource.Name, err)
	}
	g.watched = append(g.watched, w)
	return nil
}

func (g *Guest) narrow(options *metav1.ListOptions) {
	options.LabelSelector, options.FieldSelector = g.config.Choice.Labels, g.config.Choice.Fields
}

// onlyNames drops what the stage does not show and takes most of the memory.
func onlyNames(obj any) (any, error) {
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		partial.ManagedFields, partial.Annotations, partial.OwnerReferences, partial.Finalizers = nil, nil, nil, nil
	}
	return obj, nil
}

// OnAdd implements [processor.ResourceEventHandler].
func (w *watchedResource) OnAdd(any, bool) {
	if w.objects.Add(1) == maxObjects+1 {
		close(w.full)
	}
}

// OnUpdate implements [processor.ResourceEventHandler].
func (w *watchedResource) OnUpdate(any, any) {}

// OnDelete implements [processor.ResourceEventHandler].
func (w *watchedResource) OnDelete(any) {
	if w.objects.Load() <= maxObjects { // what was too much once is not watched any more
		w.objects.Add(-1)
	}
}

// Run watches until ctx is done.
func (g *Guest) Run(ctx context.Context) {
	var group routine.Group
	for _, w := range g.watched {
		group.Go(ctx, "guest.watch", w.run)
	}
	<-ctx.Done()
	group.Wait()
	g.client.CloseIdleConnections()
}

// run runs one informer until ctx is done, or until there are more objects than we have room for.
func (w *watchedResource) run(ctx context.Context) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w.factory.Start(watching)
	select {
	case <-ctx.Done():
	case <-w.full:
		w.trouble.say(fmt.Sprintf("there are more than %d objects: choose a namespace or a selector", maxObjects))
	}
	stop()
	w.factory.Shutdown()
}

// Recount lets the stores of a resource report what they hold, if that is at most limit objects.
func (g *Guest) Recount(resource, subject string, limit int) {
	for _, w := range g.watched {
		if subject == "informer" && w.resource.plural() == resource {
			w.informer.Recount(limit)
		}
	}
}

// Snapshot returns the state of the informers.
func (g *Guest) Snapshot() map[string]informer.Snapshot {
	snapshots := map[string]informer.Snapshot{}
	for _, w := range g.watched {
		snapshots[w.resource.Name] = w.informer.Snapshot()
	}
	return snapshots
}

// GuestState is how a guest is doing.
type GuestState struct {
	Server  string         `json:"server"` // the address that is asked first
	Choice  Choice         `json:"choice"`
	Watched []WatchedState `json:"watched"`
	Memory  uint64         `json:"memory"` // bytes of the program's heap
}

// WatchedState is one resource that is watched.
type WatchedState struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Objects  int64  `json:"objects"`
	Trouble  string `json:"trouble"` // what is wrong, and what to do; "" if nothing is
}

// State returns how the guest is doing.
func (g *Guest) State() GuestState {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	state := GuestState{Server: g.client.Transport.(*Transport).Server().String(), Choice: g.config.Choice, Watched: []WatchedState{}, Memory: sample[0].Value.Uint64()}
	for _, w := range g.watched {
		state.Watched = append(state.Watched, WatchedState{
			Resource: w.resource.Name, Synced: w.informer.HasSynced(), Objects: w.objects.Load(), Trouble: w.trouble.said(),
		})
	}
	return state
}

// Check refuses a choice that cannot be meant: 400.
func (c *Choice) Check() error {
	slices.Sort(c.Resources)
	c.Resources = slices.Compact(c.Resources)
	if len(c.Resources) == 0 || len(c.Resources) > maxChosen {
		return apierrors.NewBadRequest(fmt.Sprintf("choose 1 to %d resources", maxChosen))
	}
	return nil
}

package informer

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	processor "listwatch/chapters/12-processor"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// fakeClient serves pods from a fakeServer and nothing of anything else.
type fakeClient struct {
	pods *fakeServer

	mu    sync.Mutex
	asked []string // "pods in default"
}

func (c *fakeClient) ListWatch(resource, namespace string, tweak func(*metav1.ListOptions)) reflector.ListerWatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, resource+" in "+namespace)
	if tweak != nil {
		options := &metav1.ListOptions{}
		tweak(options)
		c.asked = append(c.asked, "with "+options.LabelSelector)
	}
	if resource == "pods" {
		return c.pods
	}
	return emptyServer{}
}

// emptyServer has no objects, and watches on which nothing happens.
type emptyServer struct{}

func (emptyServer) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
}

func (emptyServer) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFake()
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

func newFactory(change ...func(*FactoryConfig)) (*SharedInformerFactory, *fakeClient) {
	client := &fakeClient{pods: newFakeServer("a", "b")}
	cfg := FactoryConfig{Client: client, Clock: clock.RealClock{}}
	for _, f := range change {
		f(&cfg)
	}
	return NewSharedInformerFactory(cfg), client
}

func TestOneInformerPerType(t *testing.T) {
	f, client := newFactory()
	assert.Equal(t, f.Pods().Informer(), f.Pods().Informer(), "two informers of pods")
	f.Nodes()
	f.Nodes()
	want := []string{"pods in ", "nodes in "}
	assert.NoDiff(t, want, client.asked)
}

func TestOptionsAreTweaked(t *testing.T) {
	f, client := newFactory(func(cfg *FactoryConfig) {
		cfg.TweakListOptions = func(options *metav1.ListOptions) { options.LabelSelector = "app=x" }
	})
	f.Pods()
	assert.Equal(t, "", cmp.Diff([]string{"pods in ", "with app=x"}, client.asked))
}

type podNames struct {
	processor.TypedResourceEventHandler[*corev1.Pod]
	names []string
}

func (p *podNames) OnAdd(pod *corev1.Pod, _ bool) { p.names = append(p.names, pod.Name) }

func TestFactoryStartsSyncsAndShutsDown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, _ := newFactory()
		ctx, cancel := context.WithCancel(t.Context())
		handler := &podNames{}
		registration := require.Value(f.Pods().AddTypedEventHandler(handler, HandlerOptions{}))(t)
		f.Start(ctx)
		f.Start(ctx)                 // starts nothing new
		late := f.Nodes().Informer() // asked for after these starts
		assert.True(t, WaitFor(ctx, registration.HasSyncedChecker()) && len(handler.names) == 2, "told of %v",
			handler.names)
		pods := f.Pods().Lister().Namespace("default").List(labels.Everything())
		assert.Equal(t, 2, len(pods), "listed %v", pods)
		assert.False(t, late.HasSynced(), "started before Start")
		f.Start(ctx)
		assert.True(t, WaitFor(ctx, late.HasSyncedChecker()), "not started")
		cancel()
		f.Shutdown()
		more := f.InformerFor(&corev1.ConfigMap{}, "configmaps")
		assert.True(t, f.InformerFor(&corev1.ConfigMap{}, "configmaps") == more, "a second one of the same")
		assert.True(t, f.InformerFor(&corev1.ConfigMap{}, "others") != more, "one for two resources of one type")
		f.Start(ctx)
		assert.False(t, more.started, "started after Shutdown")
	})
}

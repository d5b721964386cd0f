package cacher

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/mvcc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	prefix = "/registry/pods"
	// logSize is more than any test has to say: rules are checked at the end, on all of it.
	logSize = 1 << 22
)

// fixture is a cacher over the in-memory etcd, running in a bubble.
type fixture struct {
	*Cacher
	t     *testing.T
	ctx   context.Context
	etcd  *mvcc.Store
	raw   *gatedStorage
	store *CacheDelegator
	log   *probe.Log

	compaction compacted
	watches    []watch.Interface // that run stops
}

// run calls f in a bubble, with a cacher that is ready, and checks that nothing is left of it afterwards.
func run(t *testing.T, change func(*Config), f func(*fixture)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		fix := newFixture(t, change)
		stop := bubble.Go(t, "cacher.Run", fix.Run)
		require.NoError(t, fix.Wait(fix.ctx))
		synctest.Wait()
		f(fix)
		for _, w := range fix.watches {
			w.Stop()
		}
		stop()
	})
}

func newFixture(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	clk := clock.RealClock{}
	fix := &fixture{t: t, ctx: t.Context(), etcd: mvcc.New(clk), log: probe.NewLog(clk, logSize)}
	probetest.Story(t, fix.log)
	p := probe.New(fix.log).Resource("pods")
	codec := require.Value(etcd3.NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, etcd3.MediaTypeProtobuf))(t)
	store := require.Value(etcd3.New(etcd3.Config{
		Client: fix.etcd, Codec: codec, NewFunc: newPod,
		ResourcePrefix: prefix, Clock: clk, Probe: p,
	}))(t)
	fix.raw = &gatedStorage{Interface: store, suggested: make(chan runtime.Object, 100)}
	config := Config{
		Storage: fix.raw, ResourcePrefix: prefix, Resource: schema.GroupResource{Resource: "pods"}, Namespaced: true,
		KeyFunc: keyFunc, NewFunc: newPod, NewListFunc: newPodList, GetAttrs: podAttrs,
		Clock: clk, Probe: p, UseWatchList: true, Compaction: &fix.compaction,
	}
	if change != nil {
		change(&config)
	}
	fix.Cacher = require.Value(New(config))(t)
	fix.store = NewCacheDelegator(fix.Cacher, fix.raw)
	return fix
}

// gatedStorage is a storage that a test can break, and that counts.
type gatedStorage struct {
	storage.Interface
	noProgress    atomic.Bool           // progress requests are lost
	err           atomic.Pointer[error] // every list and every watch fails; nil: none does
	nLists, nGets atomic.Int64
	suggested     chan runtime.Object // sent by GuaranteedUpdate, never closed; room for more than a test writes
}

func (g *gatedStorage) failure() error {
	if err := g.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (g *gatedStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	g.nLists.Add(1)
	if err := g.failure(); err != nil {
		return err
	}
	return g.Interface.GetList(ctx, key, opts, out)
}

func (g *gatedStorage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	g.nGets.Add(1)
	return g.Interface.Get(ctx, key, opts, out)
}

func (g *gatedStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if err := g.failure(); err != nil {
		return nil, err
	}
	return g.Interface.Watch(ctx, key, opts)
}

func (g *gatedStorage) RequestWatchProgress(ctx context.Context) error {
	if g.noProgress.Load() {
		return nil
	}
	return g.Interface.RequestWatchProgress(ctx)
}

func (g *gatedStorage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	select {
	case g.suggested <- cached:
	default: // a test that writes this often does not look
	}
	return g.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached)
}

func newPod() runtime.Object     { return &corev1.Pod{} }
func newPodList() runtime.Object { return &corev1.PodList{} }

func keyFunc(obj any) (string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", err
	}
	return prefix + "/" + accessor.GetNamespace() + "/" + accessor.GetName(), nil
}

func podAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	pod := obj.(*corev1.Pod)
	return pod.Labels, fields.Set{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "spec.nodeName": pod.Spec.NodeName,
	}, nil
}

// withTrigger indexes pods by their node.
func withTrigger(c *Config) {
	c.Trigger = &storage.Trigger{Field: "spec.nodeName",
		ValueOf: func(obj runtime.Object) string { return obj.(*corev1.Pod).Spec.NodeName }}
}

// pod returns a pod from "default/a", with labels and node from "app=x node=n1".
func pod(id string, attributes ...string) *corev1.Pod {
	namespace, name, _ := strings.Cut(id, "/")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	set(p, attributes)
	return p
}

func set(p *corev1.Pod, attributes []string) {
	p.Labels = map[string]string{}
	for _, attribute := range attributes {
		name, value, _ := strings.Cut(attribute, "=")
		if name == "node" {
			p.Spec.NodeName = value
			continue
		}
		p.Labels[name] = value
	}
}

// create, update and remove write through the delegator and return the resource version.
func (f *fixture) create(id string, attributes ...string) string {
	f.t.Helper()
	out := &corev1.Pod{}
	require.NoError(f.t, f.store.Create(f.ctx, prefix+"/"+id, pod(id, attributes...), out), "create %s", id)
	return out.ResourceVersion
}

func (f *fixture) update(id string, attributes ...string) string {
	f.t.Helper()
	out := &corev1.Pod{}
	change := func(current runtime.Object) (runtime.Object, error) {
		p := current.(*corev1.Pod)
		set(p, attributes)
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations["update"] += "x" // or etcd would be spared the write
		return p, nil
	}
	require.NoError(f.t, f.store.GuaranteedUpdate(f.ctx, prefix+"/"+id, out, false, nil, change, nil), "update %s", id)
	return out.ResourceVersion
}

func (f *fixture) remove(id string) string {
	f.t.Helper()
	out := &corev1.Pod{}
	require.NoError(f.t, f.store.Delete(f.ctx, prefix+"/"+id, out, nil, nil), "delete %s", id)
	return out.ResourceVersion
}

// everything returns options for a watch of the whole resource from rv.
func everything(rv string) storage.ListOptions {
	return storage.ListOptions{ResourceVersion: rv, Predicate: storage.Everything, Recursive: true}
}

// selecting returns options for a recursive watch with selectors; "" selects everything.
func selecting(rv, label, field string) storage.ListOptions {
	opts := everything(rv)
	opts.Predicate.GetAttrs = podAttrs
	opts.Predicate.Label = must(labels.Parse(label))
	opts.Predicate.Field = must(fields.ParseSelector(field))
	return opts
}

// watchList returns opts with initial events and a bookmark at their end.
func watchList(opts storage.ListOptions) storage.ListOptions {
	yes := true
	opts.SendInitialEvents = &yes
	opts.Predicate.AllowWatchBookmarks = true
	return opts
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// watch begins a watch of key, relative to the prefix. It ends with the test.
func (f *fixture) watch(key string, opts storage.ListOptions) watch.Interface {
	f.t.Helper()
	w, err := f.store.Watch(f.ctx, prefix+key, opts)
	require.NoError(f.t, err, "watch %s", key)
	f.watches = append(f.watches, w)
	return w
}

// seen returns w's events until every goroutine waits, as "ADDED default/a 5", and "closed" if its channel is.
func seen(w watch.Interface) []string { return bubble.Drain(w.ResultChan(), describeEvent) }

func describeEvent(event watch.Event) string {
	object := event.Object
	if cacheable, ok := object.(runtime.CacheableObject); ok {
		object = cacheable.GetObject()
	}
	switch obj := object.(type) {
	case *metav1.Status:
		return fmt.Sprintf("ERROR %d %s", obj.Code, obj.Reason)
	case *corev1.Pod:
		if event.Type != watch.Bookmark {
			return fmt.Sprintf("%s %s/%s %s", event.Type, obj.Namespace, obj.Name, obj.ResourceVersion)
		}
		if obj.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			return "END " + obj.ResourceVersion
		}
		return "BOOKMARK " + obj.ResourceVersion
	}
	return fmt.Sprintf("%s %T", event.Type, event.Object)
}

// is compares what was seen with what should have been: "ADDED default/a 2, closed".
func (f *fixture) is(what string, got []string, want string) {
	f.t.Helper()
	assert.Equal(f.t, want, strings.Join(got, ", "), what)
}

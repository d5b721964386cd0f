package sidebyside

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	realstorage "k8s.io/apiserver/pkg/storage"
	realcacher "k8s.io/apiserver/pkg/storage/cacher"
	realetcd3 "k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	cacher "listwatch/chapters/06-cacher"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/etcdnode"
)

const prefix = "/registry/pods"

var podsResource = schema.GroupResource{Resource: "pods"}

func newPod() runtime.Object     { return &corev1.Pod{} }
func newPodList() runtime.Object { return &corev1.PodList{} }

func keyOf(obj runtime.Object) (string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", err
	}
	return prefix + "/" + accessor.GetNamespace() + "/" + accessor.GetName(), nil
}

// ourAttrs and theirAttrs return a pod's labels and fields, as each side's registry does. Our fields are a view of the
// pod. Upstream's are a map, filled as in pkg/registry/core/pod of k8s.io/kubernetes.
var ourAttrs = registry.Pods().GetAttrs

func theirAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod := obj.(*corev1.Pod)
	return pod.Labels, fields.Set{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "spec.nodeName": pod.Spec.NodeName,
		"spec.restartPolicy": string(pod.Spec.RestartPolicy), "spec.schedulerName": pod.Spec.SchedulerName,
		"spec.serviceAccountName": pod.Spec.ServiceAccountName, "spec.hostNetwork": strconv.FormatBool(
			pod.Spec.HostNetwork),
		"status.phase": string(pod.Status.Phase), "status.podIP": pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}, nil
}

func nodeName(obj runtime.Object) string { return obj.(*corev1.Pod).Spec.NodeName }

// query is a list or a watch that both sides understand.
type query struct {
	namespace, name string // with a name, the query is for one object
	rv              string
	match           metav1.ResourceVersionMatch
	label, field    string
	limit           int64
	token           string
	initial         *bool
	bookmarks       bool
}

func (q *query) key() string {
	return strings.TrimSuffix(prefix+"/"+q.namespace+"/"+q.name, "/")
}

// side is a store or a cache, ours or upstream's.
type side interface {
	list(ctx context.Context, q query, into *corev1.PodList) error
	watch(ctx context.Context, q query) (watch.Interface, error)
	get(ctx context.Context, key, rv string, ignoreNotFound bool, into *corev1.Pod) error
}

// ours is one of our storages: the store, or the cache in front of it.
type ours struct{ storage.Interface }

func (s ours) options(q query) storage.ListOptions {
	return storage.ListOptions{
		ResourceVersion: q.rv, ResourceVersionMatch: q.match, Recursive: q.name == "", SendInitialEvents: q.initial,
		Predicate: storage.SelectionPredicate{
			Label: must(labels.Parse(q.label)), Field: must(fields.ParseSelector(q.field)), GetAttrs: ourAttrs,
			Limit: q.limit, Continue: q.token, AllowWatchBookmarks: q.bookmarks,
		},
	}
}

func (s ours) list(ctx context.Context, q query, into *corev1.PodList) error {
	return s.GetList(ctx, q.key(), s.options(q), into)
}

func (s ours) watch(ctx context.Context, q query) (watch.Interface, error) {
	return s.Watch(ctx, q.key(), s.options(q))
}

func (s ours) get(ctx context.Context, key, rv string, ignoreNotFound bool, into *corev1.Pod) error {
	return s.Get(ctx, key, storage.GetOptions{ResourceVersion: rv, IgnoreNotFound: ignoreNotFound}, into)
}

// theirs is one of upstream's storages.
type theirs struct{ realstorage.Interface }

func (s theirs) options(q query) realstorage.ListOptions {
	return realstorage.ListOptions{
		ResourceVersion: q.rv, ResourceVersionMatch: q.match, Recursive: q.name == "", SendInitialEvents: q.initial,
		Predicate: realstorage.SelectionPredicate{
			Label: must(labels.Parse(q.label)), Field: must(fields.ParseSelector(q.field)), GetAttrs: theirAttrs,
			IndexFields: []string{"spec.nodeName"}, Limit: q.limit, Continue: q.token, AllowWatchBookmarks: q.bookmarks,
		},
	}
}

// scoped puts the namespace and the name of the request's path into ctx, from which upstream's server half reads them.
func scoped(ctx context.Context, q query) context.Context {
	ctx = request.WithNamespace(ctx, q.namespace)
	return request.WithRequestInfo(ctx, &request.RequestInfo{Namespace: q.namespace, Name: q.name})
}

func (s theirs) list(ctx context.Context, q query, into *corev1.PodList) error {
	return s.GetList(scoped(ctx, q), q.key(), s.options(q), into)
}

func (s theirs) watch(ctx context.Context, q query) (watch.Interface, error) {
	return s.Watch(scoped(ctx, q), q.key(), s.options(q))
}

func (s theirs) get(ctx context.Context, key, rv string, ignoreNotFound bool, into *corev1.Pod) error {
	return s.Get(ctx, key, realstorage.GetOptions{ResourceVersion: rv, IgnoreNotFound: ignoreNotFound}, into)
}

// pair has both sides over one etcd. A side has a store, and a cache in front of the store.
type pair struct {
	tb                     testing.TB
	client                 *clientv3.Client
	ourStore, ourCache     side
	theirStore, theirCache side
	writer                 realstorage.Interface // upstream's store; makes all writes except those of atOnce
}

// newPair starts etcd, fills it with prepare, and then starts both caches, which list the prepared objects.
func newPair(tb testing.TB, prepare func(*pair)) *pair {
	tb.Helper()
	p := &pair{tb: tb, client: newEtcd(tb)}
	ourStore := newOurStore(tb, p.client, nil)
	theirStore := newTheirStore(tb, p.client)
	p.ourStore, p.theirStore, p.writer = ours{ourStore}, theirs{theirStore}, theirStore
	prepare(p)
	p.ourCache = ours{newOurCache(tb, ourStore, nil)}
	p.theirCache = theirs{newTheirCache(tb, theirStore)}
	return p
}

// newEtcd starts an etcd that ends with the test.
func newEtcd(tb testing.TB) *clientv3.Client {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	node := require.Value(etcdnode.Start(ctx, etcdnode.Options{Dir: tb.TempDir()}))(tb)
	tb.Cleanup(func() { node.Close() })
	return node.Client()
}

// codec encodes the objects of both stores.
var codec = must(etcd3.NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, etcd3.MediaTypeProtobuf))

func newOurStore(tb testing.TB, client *clientv3.Client, p *probe.Probe) *etcd3.Store {
	tb.Helper()
	store := require.Value(etcd3.New(etcd3.Config{
		Client: etcd3.NewClient(client), Codec: codec, NewFunc: newPod,
		ResourcePrefix: prefix, Clock: clock.RealClock{}, Probe: p,
	}))(tb)
	return store
}

// newOurCache returns a ready cache over store. The cache ends with the test.
func newOurCache(tb testing.TB, store storage.Interface, p *probe.Probe) ourCache {
	tb.Helper()
	cache := startOurCache(tb, store, p, clock.RealClock{})
	eventually.Holds(tb, "our cacher is ready", cache.cacher.Ready)
	return cache
}

type ourCache struct {
	*cacher.CacheDelegator
	cacher *cacher.Cacher
}

// startOurCache returns a cache over store. The cache may not be ready yet, and ends with the test.
func startOurCache(tb testing.TB, store storage.Interface, p *probe.Probe, clk clock.WithTicker) ourCache {
	tb.Helper()
	c := require.Value(cacher.New(cacher.Config{
		Storage: store, ResourcePrefix: prefix, Resource: podsResource, Namespaced: true,
		KeyFunc: func(obj any) (string, error) { return keyOf(obj.(runtime.Object)) },
		NewFunc: newPod, NewListFunc: newPodList, GetAttrs: ourAttrs,
		Trigger: &storage.Trigger{Field: "spec.nodeName", ValueOf: nodeName},
		Clock:   clk, UseWatchList: true, Probe: p,
	}))(tb)
	bubble.Go(tb, "test.cacher", c.Run)
	return ourCache{cacher.NewCacheDelegator(c, store), c}
}

// neverCompacts replaces upstream's compactor.
type neverCompacts struct{}

func (neverCompacts) CompactRevision() int64 { return 0 }

func newTheirStore(tb testing.TB, client *clientv3.Client) realstorage.Interface {
	tb.Helper()
	versioner := realstorage.APIObjectVersioner{}
	k := &kubernetes.Client{Client: client}
	k.Kubernetes = k
	store := require.Value(realetcd3.New(k, neverCompacts{}, codec, newPod, newPodList, "/", prefix, podsResource,
		identity.NewEncryptCheckTransformer(), realetcd3.NewDefaultLeaseManagerConfig(),
		realetcd3.NewDefaultDecoder(codec, versioner), versioner))(tb)
	tb.Cleanup(store.Close)
	return store
}

func newTheirCache(tb testing.TB, store realstorage.Interface) realstorage.Interface {
	tb.Helper()
	delegator := startTheirCache(tb, store, clock.RealClock{})
	eventually.Holds(tb, "the real cacher is ready", func() bool { return delegator.ReadinessCheck() == nil })
	return delegator
}

func startTheirCache(tb testing.TB, store realstorage.Interface, clk clock.WithTicker) realstorage.Interface {
	tb.Helper()
	c := require.Value(realcacher.NewCacherFromConfig(realcacher.Config{
		Storage: store, Versioner: realstorage.APIObjectVersioner{}, GroupResource: podsResource,
		EventsHistoryWindow: realcacher.DefaultEventFreshDuration, ResourcePrefix: prefix,
		KeyFunc: keyOf, NewFunc: newPod, NewListFunc: newPodList, GetAttrsFunc: theirAttrs,
		IndexerFuncs: realstorage.IndexerFuncs{"spec.nodeName": nodeName},
		Indexers: &cache.Indexers{realstorage.FieldIndex("spec.nodeName"): func(obj any) ([]string, error) {
			return []string{nodeName(obj.(runtime.Object))}, nil
		}},
		Codec: codec, Clock: clk,
	}))(tb)
	delegator := realcacher.NewCacheDelegator(c, store)
	tb.Cleanup(func() {
		delegator.Stop()
		c.Stop()
	})
	return delegator
}

// pod returns a pod from "default/a", with labels and node from "app=x node=n1".
func pod(id, attributes string) *corev1.Pod {
	namespace, name, _ := strings.Cut(id, "/")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}}
	setAttributes(p, attributes)
	return p
}

func setAttributes(p *corev1.Pod, attributes string) {
	p.Labels = map[string]string{}
	p.Spec.NodeName = ""
	for _, attribute := range strings.Fields(attributes) {
		name, value, _ := strings.Cut(attribute, "=")
		if name == "node" {
			p.Spec.NodeName = value
			continue
		}
		p.Labels[name] = value
	}
}

// write executes a line and returns the resulting resource version:
//
//	+default/a app=x node=n1   create
//	~default/a app=y           update
//	-default/a                 delete
//	+default/a, -default/b     all in one revision, by an etcd client that bypasses both sides
func (p *pair) write(line string) string {
	p.tb.Helper()
	if lines := strings.Split(line, ", "); len(lines) > 1 {
		return p.atOnce(lines)
	}
	ctx := context.Background()
	id, attributes, _ := strings.Cut(line[1:], " ")
	key, out := prefix+"/"+id, &corev1.Pod{}
	var err error
	switch line[0] {
	case '+':
		err = p.writer.Create(ctx, key, pod(id, attributes), out, 0)
	case '~':
		err = p.writer.GuaranteedUpdate(ctx, key, out, false, nil, func(current runtime.Object,
			_ realstorage.ResponseMeta) (runtime.Object, *uint64, error) {
			pod := current.(*corev1.Pod)
			setAttributes(pod, attributes)
			pod.Generation++ // otherwise the store would skip the write
			return pod, nil, nil
		}, nil)
	case '-':
		err = p.writer.Delete(ctx, key, out, nil, realstorage.ValidateAllObjectFunc, nil, realstorage.DeleteOptions{})
	default:
		err = fmt.Errorf("unknown verb")
	}
	require.NoError(p.tb, err, line)
	return out.ResourceVersion
}

func (p *pair) atOnce(lines []string) string {
	p.tb.Helper()
	var ops []clientv3.Op
	for _, line := range lines {
		id, attributes, _ := strings.Cut(line[1:], " ")
		op := clientv3.OpDelete(prefix + "/" + id)
		if line[0] != '-' {
			op = clientv3.OpPut(prefix+"/"+id, string(must(runtime.Encode(codec, pod(id, attributes)))))
		}
		ops = append(ops, op)
	}
	written := require.Value(p.client.Txn(context.Background()).Then(ops...).Commit())(p.tb)
	return strconv.FormatInt(written.Header.Revision, 10)
}

// writeAll writes every line and returns the last resource version.
func (p *pair) writeAll(lines ...string) (rv string) {
	p.tb.Helper()
	for _, line := range lines {
		rv = p.write(line)
	}
	return rv
}

// bothReach waits until both caches list the same objects as etcd at rv. To wait for rv alone would not suffice: a
// cache has a transaction's version after the transaction's first change.
func (p *pair) bothReach(rv string) {
	p.tb.Helper()
	q := query{rv: rv, match: metav1.ResourceVersionMatchNotOlderThan}
	want := listAll(context.Background(), p.ourStore, query{rv: rv, match: metav1.ResourceVersionMatchExact})
	require.True(p.tb, strings.HasPrefix(want, "page at "+rv+"\n"), "etcd at %s: %s", rv, want)
	for name, s := range map[string]side{"ours": p.ourCache, "theirs": p.theirCache} {
		program.Eventually(p.tb, patience, func() (bool, string) {
			got := listAll(context.Background(), s, q)
			return got == want, fmt.Sprintf("%s lists %s, etcd %s", name, got, want)
		})
	}
}

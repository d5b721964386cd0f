package etcd3

import (
	"context"
	"strconv"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/etcdnode"
	"listwatch/internal/server/mvcc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ Client = (*mvcc.Store)(nil)

	newPod     = func() runtime.Object { return &corev1.Pod{} }
	newPodList = func() runtime.Object { return &corev1.PodList{} }
)

const prefix = "/registry/pods"

// key returns the storage key of default/name.
func key(name string) string { return prefix + "/default/" + name }

// pod returns default/name with one label, unless its value is "".
func pod(name, app string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if app != "" {
		p.Labels = map[string]string{"app": app}
	}
	return p
}

func codec(t testing.TB, mediaType string) runtime.Codec {
	t.Helper()
	c, err := NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, mediaType)
	require.NoError(t, err)
	return c
}

func newStore(t testing.TB, client Client, change func(*Config)) *Store {
	t.Helper()
	cfg := Config{
		Client: client, Codec: codec(t, MediaTypeProtobuf), NewFunc: newPod,
		ResourcePrefix: prefix, Resource: corev1.Resource("pods"), Clock: clock.RealClock{}, Probe: probetest.Probe(t,
			""),
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	require.NoError(t, err)
	return s
}

// newMVCC returns a store over an in-memory etcd.
func newMVCC(t testing.TB) (*Store, *mvcc.Store) {
	t.Helper()
	client := mvcc.New(clock.RealClock{})
	return newStore(t, client, nil), client
}

// newEtcd returns a client of a real etcd.
func newEtcd(t testing.TB) Client {
	t.Helper()
	node, err := etcdnode.Start(context.Background(), etcdnode.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, node.Close())
	})
	return NewClient(node.Client())
}

func create(t testing.TB, s *Store, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	out := &corev1.Pod{}
	if err := s.Create(context.Background(), key(p.Name), p, out); err != nil {
		t.Fatalf("create %s: %v", p.Name, err)
	}
	return out
}

// relabel sets the pod's one label.
func relabel(t testing.TB, s *Store, name, app string) *corev1.Pod {
	t.Helper()
	out := &corev1.Pod{}
	update := func(current runtime.Object) (runtime.Object, error) {
		current.(*corev1.Pod).Labels = map[string]string{"app": app}
		return current, nil
	}
	require.NoError(t, s.GuaranteedUpdate(context.Background(), key(name), out, false, nil, update, nil),
		"update %s", name)
	return out
}

func remove(t testing.TB, s *Store, name string) *corev1.Pod {
	t.Helper()
	out := &corev1.Pod{}
	require.NoError(t, s.Delete(context.Background(), key(name), out, nil, nil, nil), "delete %s", name)
	return out
}

// selecting returns a predicate on the one label.
func selecting(t testing.TB, selector string) storage.SelectionPredicate {
	t.Helper()
	label, err := labels.Parse(selector)
	require.NoError(t, err)
	return storage.SelectionPredicate{Label: label, Field: fields.Everything(),
		GetAttrs: storage.DefaultNamespaceScopedAttr}
}

// everything returns options for a watch or list of all pods.
func everything() storage.ListOptions {
	return storage.ListOptions{Recursive: true, Predicate: storage.Everything}
}

func rvOf(obj runtime.Object) uint64 {
	rv, _ := storage.APIObjectVersioner{}.ObjectResourceVersion(obj)
	return rv
}

// line writes an event in one line: "ADDED a 2 web".
func line(e watch.Event) string {
	switch obj := e.Object.(type) {
	case *corev1.Pod:
		text := string(e.Type)
		if obj.Name != "" {
			text += " " + obj.Name
		}
		text += " " + obj.ResourceVersion
		if app := obj.Labels["app"]; app != "" {
			text += " " + app
		}
		if obj.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			text += " end"
		}
		return text
	case *metav1.Status:
		return string(e.Type) + " " + strconv.Itoa(int(obj.Code)) + " " + string(obj.Reason)
	default:
		return string(e.Type) + " something else"
	}
}

func ptr[T any](v T) *T { return &v }

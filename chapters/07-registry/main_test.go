package registry

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	etcd3 "listwatch/chapters/02-etcd3"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/mvcc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var wantStatus = apitest.WantError

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a registry over an etcd in memory, at a time that stands still.
type world struct {
	t     *testing.T
	etcd  *mvcc.Store
	clock *clocktesting.FakePassiveClock
	pods  podStorage
}

// podStorage are the storages of pods.
type podStorage struct {
	Pod     *Store
	Status  *StatusREST
	Binding *BindingREST
}

func newPodStorage(config Config) podStorage {
	store := New(config)
	return podStorage{store, NewStatusREST(store), &BindingREST{store}}
}

// kindOf returns the resource of that name; of events, that of core/v1.
func kindOf(name string) *Resource {
	all := Resources()
	return all[slices.IndexFunc(all, func(r *Resource) bool { return r.Name == name })]
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, etcd: mvcc.New(clock.RealClock{}), clock: clocktesting.NewFakePassiveClock(epoch)}
	w.pods = newPodStorage(w.config(Pods()))
	w.pods.Pod.generateName = func(base string) string { return base + "x" }
	return w
}

func (w *world) config(r *Resource) Config {
	w.t.Helper()
	codec := require.Value(etcd3.NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, etcd3.MediaTypeProtobuf))(w.t)
	p := probetest.Probe(w.t, "")
	store := require.Value(etcd3.New(etcd3.Config{
		Client: w.etcd, Codec: codec, NewFunc: r.NewFunc,
		ResourcePrefix: r.Prefix, Clock: clock.RealClock{}, Probe: p,
	}))(w.t)
	return Config{Resource: r, Storage: store, Clock: w.clock, Probe: p}
}

// pod returns a valid pod named name, changed by edits.
func pod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:1"}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func onNode(p *corev1.Pod)    { p.Spec.NodeName = "n1" }
func finalized(p *corev1.Pod) { p.Finalizers = []string{"example.com/f"} }

// create stores a pod and fails the test if that fails.
func (w *world) create(p *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	out, err := w.pods.Pod.Create(w.t.Context(), "default", p, &metav1.CreateOptions{})
	require.True(w.t, err == nil, "create %s: %v", p.Name, err)
	return out.(*corev1.Pod)
}

// stored returns the stored pod "a", or nil.
func (w *world) stored() *corev1.Pod {
	w.t.Helper()
	out, err := w.pods.Pod.Get(w.t.Context(), "default", "a", &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	return out.(*corev1.Pod)
}

type updater interface {
	Update(ctx context.Context, namespace, name string, info UpdatedObjectInfo, forceAllowCreate bool,
		options *metav1.UpdateOptions) (runtime.Object, bool, error)
}

// update changes the pod "a" by an edit of the stored one.
func (w *world) update(store updater, edit func(*corev1.Pod)) (*corev1.Pod, error) {
	w.t.Helper()
	out, _, err := store.Update(w.t.Context(), "default", "a", editing(edit), false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return out.(*corev1.Pod), nil
}

// mustUpdate updates the pod "a", and fails the test if that fails.
func (w *world) mustUpdate(store updater, edit func(*corev1.Pod)) *corev1.Pod {
	w.t.Helper()
	out, err := w.update(store, edit)
	require.NoError(w.t, err)
	return out
}

// editing returns an UpdatedObjectInfo that edits the stored pod.
func editing(edit func(*corev1.Pod)) UpdatedObjectInfo {
	return func(_ context.Context, old runtime.Object) (runtime.Object, error) {
		p := old.(*corev1.Pod).DeepCopy()
		edit(p)
		return p, nil
	}
}

func seconds(n int64) *int64 { return &n }

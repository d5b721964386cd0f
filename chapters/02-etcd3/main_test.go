package etcd3

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	return require.Value(NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, mediaType))(t)
}

func newStore(t testing.TB, client Client, change func(*Config)) *Store {
	t.Helper()
	cfg := Config{
		Client: client, Codec: codec(t, MediaTypeProtobuf), NewFunc: newPod,
		ResourcePrefix: prefix, Clock: clock.RealClock{}, Probe: probetest.Probe(t, ""),
	}
	if change != nil {
		change(&cfg)
	}
	return require.Value(New(cfg))(t)
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
	node := require.Value(etcdnode.Start(context.Background(), etcdnode.Options{Dir: t.TempDir()}))(t)
	t.Cleanup(func() {
		assert.NoError(t, node.Close())
	})
	return NewClient(node.Client())
}

func create(t testing.TB, s *Store, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	out := &corev1.Pod{}
	err := s.Create(t.Context(), key(p.Name), p, out)
	require.True(t, err == nil, "create %s: %v", p.Name, err)
	return out
}

func setLabel(app string) storage.UpdateFunc {
	return func(current runtime.Object) (runtime.Object, error) {
		current.(*corev1.Pod).Labels = map[string]string{"app": app}
		return current, nil
	}
}

// relabel sets the pod's one label.
func relabel(t testing.TB, s *Store, name, app string) *corev1.Pod {
	t.Helper()
	out := &corev1.Pod{}
	require.NoError(t, s.GuaranteedUpdate(t.Context(), key(name), out, false, nil, setLabel(app), nil), "update %s",
		name)
	return out
}

func remove(t testing.TB, s *Store, name string) *corev1.Pod {
	t.Helper()
	out := &corev1.Pod{}
	require.NoError(t, s.Delete(t.Context(), key(name), out, nil, nil), "delete %s", name)
	return out
}

// selecting returns a predicate on the one label.
func selecting(t testing.TB, selector string) storage.SelectionPredicate {
	t.Helper()
	label := require.Value(labels.Parse(selector))(t)
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

func TestWhatAClientIsToldOfEtcdsErrors(t *testing.T) {
	itself := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for name, test := range map[string]struct {
		err  error
		want func(error) bool
	}{
		"deadline":            {context.DeadlineExceeded, apierrors.IsTimeout},
		"deadline, from afar": {status.Error(codes.DeadlineExceeded, "late"), apierrors.IsTimeout},
		"too large for etcd":  {rpctypes.ErrRequestTooLarge, apierrors.IsRequestEntityTooLargeError},
		"too large for gRPC": {status.Error(codes.ResourceExhausted, "trying to send message larger than max"),
			apierrors.IsRequestEntityTooLargeError},
		"away":                  {status.Error(codes.Unavailable, "connection refused"), apierrors.IsServerTimeout},
		"without a leader":      {rpctypes.ErrNoLeader, apierrors.IsServerTimeout},
		"full":                  {rpctypes.ErrNoSpace, itself(rpctypes.ErrNoSpace)},
		"too busy":              {rpctypes.ErrTooManyRequests, itself(rpctypes.ErrTooManyRequests)},
		"cancelled by a caller": {context.Canceled, itself(context.Canceled)},
	} {
		t.Run(name, func(t *testing.T) {
			got := storage.InterpretError(interpretError(test.err, key("a")), "get", corev1.Resource("pods"), "a")
			assert.True(t, test.want(got), "got %v (%T)", got, got)
		})
	}
}

func TestAWriteThatMayHaveHappenedIsNotToBeRepeated(t *testing.T) {
	for _, err := range []error{rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail,
		status.Error(codes.Unavailable, "transport is closing"), context.DeadlineExceeded} {
		got := storage.InterpretError(interpretWriteError(err, key("a")), "create", corev1.Resource("pods"), "a")
		_, again := apierrors.SuggestsClientDelay(got)
		assert.False(t, again, "%v: got %v, which tells the client to come again", err, got)
	}
}

// overdue is a context whose deadline has passed by the wall clock although, on the injected one, there is time left.
type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

func TestADeadlineOfAnotherClockDoesNotFailAWatch(t *testing.T) {
	s := newStore(t, newEtcd(t), nil)
	create(t, s, pod("a", "web"))
	ctx := overdue{t.Context()}
	_, err := s.GetCurrentResourceVersion(ctx)
	assert.True(t, err == nil, "current version: %v", err)
	w := require.Value(s.Watch(ctx, prefix, everything()))(t)
	event := <-w.ResultChan()
	assert.True(t, event.Type == watch.Added, "got %s, want ADDED", line(event))
	w.Stop()
	for range w.ResultChan() { // until everything of it has ended
	}
}

// FuzzStoredBytes: whatever stands in etcd, reading it gives an object or an error, and an object that was read can be
// written back and read again.
func FuzzStoredBytes(f *testing.F) {
	for _, mediaType := range []string{MediaTypeProtobuf, MediaTypeJSON} {
		data := require.Value(runtime.Encode(codec(f, mediaType), pod("a", "web")))(f)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(nil))
	f.Add([]byte("k8s\x00"))
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
	f.Add([]byte("kind: Pod\napiVersion: v1\n"))
	client := mvcc.New(clock.RealClock{})
	s := newStore(f, client, nil)
	f.Fuzz(func(t *testing.T, value []byte) {
		client.Put(key("a"), value)
		got := &corev1.Pod{}
		err := s.Get(t.Context(), key("a"), storage.GetOptions{}, got)
		listErr := s.GetList(t.Context(), prefix, everything(), newPodList())
		require.Equal(t, err == nil, listErr == nil, "get says %v, list says %v", err, listErr)
		if err != nil {
			return
		}
		out := &corev1.Pod{}
		same := func(current runtime.Object) (runtime.Object, error) { return current, nil }
		require.NoError(t, s.GuaranteedUpdate(t.Context(), key("a"), out, false, nil, same, nil), "write back %v", got)
		assert.True(t, out.Name == got.Name && out.Namespace == got.Namespace,
			"read %v, and after writing it back %v", got, out)
	})
}

// The type of an event follows from whether the object matched before and matches now, never from the verb.
func TestTheTypeOfAnEventFollowsFromTheTwoMatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store, _ *mvcc.Store) {
		created := create(t, s, pod("a", "db"))
		w := start(t, s, prefix, storage.ListOptions{
			ResourceVersion: created.ResourceVersion, Recursive: true, Predicate: selecting(t, "app=web"),
		})
		relabel(t, s, "a", "web")
		w.want(t, "ADDED a 3 web") // an update made it match
		relabel(t, s, "a", "db")
		w.want(t, "DELETED a 4 web") // an update made it match no longer; the pod lives
		remove(t, s, "a")
		w.want(t) // what did not match is not missed
	})
}

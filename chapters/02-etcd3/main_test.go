package etcd3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
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
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/etcdnode"
	"listwatch/internal/server/mvcc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var wantStatus = apitest.WantError

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
func relabel(t testing.TB, s *Store, name, app string) {
	t.Helper()
	require.NoError(t, s.GuaranteedUpdate(t.Context(), key(name), &corev1.Pod{}, false, nil, setLabel(app), nil),
		"update %s", name)
}

func remove(t testing.TB, s *Store, name string) {
	t.Helper()
	require.NoError(t, s.Delete(t.Context(), key(name), &corev1.Pod{}, nil, nil), "delete %s", name)
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
		require.Equal(t, err == nil, s.GetList(t.Context(), prefix, everything(), newPodList()) == nil, "get: %v", err)
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
		w := start(t, s, storage.ListOptions{
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

// names writes a list in one line: "a b at 3".
func names(list *corev1.PodList) string {
	var parts []string
	for _, p := range list.Items {
		parts = append(parts, p.Name)
	}
	return strings.Join(parts, " ") + " at " + list.ResourceVersion
}

func list(t *testing.T, s *Store, opts storage.ListOptions) (*corev1.PodList, error) {
	t.Helper()
	out := &corev1.PodList{}
	return out, s.GetList(t.Context(), prefix, opts, out)
}

func mustList(t *testing.T, s *Store, opts storage.ListOptions) *corev1.PodList {
	t.Helper()
	return require.Value(list(t, s, opts))(t)
}

// counting counts range reads and writes down their limits.
type counting struct {
	Client
	limits []int64
}

func (c *counting) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse,
	error) {
	c.limits = append(c.limits, opts.Limit)
	return c.Client.List(ctx, prefix, opts)
}

func TestPagesDoubleUntilARareObjectIsFound(t *testing.T) {
	client := &counting{Client: mvcc.New(clock.RealClock{})}
	s := newStore(t, client, nil)
	for n := range 40 {
		create(t, s, pod(fmt.Sprintf("p%02d", n), ""))
	}
	create(t, s, pod("rare", "web"))
	create(t, s, pod("s", ""))
	opts := everything()
	opts.Predicate = selecting(t, "app=web")
	opts.Predicate.Limit = 1
	got := mustList(t, s, opts)
	assert.True(t, names(got) == "rare at 43" && got.Continue != "",
		"got %q, continue %q, want rare and a token", names(got), got.Continue)
	assert.EqualSlices(t, []int64{1, 2, 4, 8, 16, 32}, client.limits, "limits")
	opts.Predicate.Continue = got.Continue
	got = mustList(t, s, opts)
	assert.Equal(t, " at 43", names(got)+got.Continue, "the rest, and its continue token")
}

func TestLimitsGrowToTheBoundOnly(t *testing.T) {
	for limit, want := range map[int64]int64{0: 0, 1: 2, 4999: 9998, 5000: 10000, 6000: 10000, 10000: 10000,
		20000: 20000} {
		assert.Equal(t, want, nextLimit(limit), "after %d", limit)
	}
}

func TestListGoesIntoAnEmptyListOnly(t *testing.T) {
	s, _ := newMVCC(t)
	create(t, s, pod("a", ""))
	out := &corev1.PodList{Items: []corev1.Pod{*pod("junk", "junk"), *pod("junk", "junk")}}
	if err := s.GetList(t.Context(), prefix, everything(), out); err != nil || names(out) != "a at 2" ||
		len(out.Items[0].Labels) != 0 {
		t.Errorf("got %q, %v", names(out), err)
	}
	assert.True(t, s.GetList(t.Context(), prefix, everything(), &corev1.Pod{}) != nil, "into a pod: got no error")
	opts := everything()
	opts.Predicate.Limit = -1
	_, err := list(t, s, opts)
	wantStatus(t, err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
}

package etcd3

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/mvcc"
)

// onBoth runs a test over the in-memory etcd and over a real one.
func onBoth(t *testing.T, test func(t *testing.T, client Client)) {
	t.Run("memory", func(t *testing.T) { test(t, mvcc.New(clock.RealClock{})) })
	t.Run("etcd", func(t *testing.T) { test(t, newEtcd(t)) })
}

// wantStatus checks code and reason of an error that a client is to see.
func wantStatus(t *testing.T, err error, code int32, reason metav1.StatusReason) {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		t.Errorf("got %v, want a status %d %s", err, code, reason)
		return
	}
	if got := status.Status(); got.Code != code || got.Reason != reason {
		t.Errorf("got %d %s (%s), want %d %s", got.Code, got.Reason, got.Message, code, reason)
	}
}

func TestStoredFormIsThatOfTheMediaTypeAndEitherIsRead(t *testing.T) {
	for _, form := range []struct {
		mediaType, other string
		begins           []byte
	}{
		{MediaTypeProtobuf, MediaTypeJSON, []byte("k8s\x00")},
		{MediaTypeJSON, MediaTypeProtobuf, []byte(`{"kind":"Pod","apiVersion":"v1"`)},
	} {
		t.Run(form.mediaType, func(t *testing.T) {
			client := mvcc.New(clock.RealClock{})
			writer := newStore(t, client, func(cfg *Config) { cfg.Codec = codec(t, form.mediaType) })
			reader := newStore(t, client, func(cfg *Config) { cfg.Codec = codec(t, form.other) })
			create(t, writer, pod("a", "web"))
			raw, err := client.Get(t.Context(), key("a"), kubernetes.GetOptions{})
			require.True(t, err == nil && bytes.HasPrefix(raw.KV.Value, form.begins),
				"stored %q, %v, want it to begin with %q", raw.KV.GetValue(), err, form.begins)
			assert.False(t, bytes.Contains(raw.KV.Value, []byte("resourceVersion")),
				"the resource version is stored: %q", raw.KV.Value)
			got := &corev1.Pod{}
			require.NoError(t, reader.Get(t.Context(), key("a"), storage.GetOptions{}, got))
			assert.True(t, got.Labels["app"] == "web" && got.Kind == "" && got.ResourceVersion == "2",
				"got %+v, want a at 2 with no kind", got)
		})
	}
}

func TestUnknownMediaTypeAndWatcherAreRefused(t *testing.T) {
	_, err := NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, "application/xml")
	assert.True(t, err != nil, "media type: got no error")
	client := mvcc.New(clock.RealClock{})
	good := Config{Client: client, Codec: codec(t, MediaTypeJSON), NewFunc: newPod, ResourcePrefix: prefix}
	for name, change := range map[string]func(*Config){
		"watcher": func(cfg *Config) { cfg.Watcher = "etcd4" },
		"slash":   func(cfg *Config) { cfg.ResourcePrefix = "/registry/pods/" },
		"empty":   func(cfg *Config) { cfg.ResourcePrefix = "" },
		"client":  func(cfg *Config) { cfg.Client = nil },
	} {
		cfg := good
		change(&cfg)
		_, err := New(cfg)
		assert.True(t, err != nil, "%s: got no error", name)
	}
}

func TestKeysOutsideTheResourceAreRefused(t *testing.T) {
	s, client := newMVCC(t)
	one := everything()
	one.Recursive = false
	// the last is the resource's root, which is no object
	for _, bad := range []string{"", "/", "/registry/podsecurity/a", "/registry/pods/../secrets/a",
		"/registry/pods/./a", "/registry", "/registry/pods"} {
		t.Run(bad, func(t *testing.T) {
			out := &corev1.Pod{}
			assert.True(t, s.Get(t.Context(), bad, storage.GetOptions{}, out) != nil, "get: no error")
			assert.True(t, s.Create(t.Context(), bad, pod("a", ""), out) != nil, "create: no error")
			assert.True(t, s.Delete(t.Context(), bad, out, nil, nil) != nil, "delete: no error")
			assert.True(t, s.GuaranteedUpdate(t.Context(), bad, out, true, nil, nil, nil) != nil, "update: no error")
			assert.True(t, s.GetList(t.Context(), bad, one, newPodList()) != nil, "list: no error")
			_, err := s.Watch(t.Context(), bad, one)
			assert.True(t, err != nil, "watch: no error")
			assert.Equal(t, 1, client.Revision(), "something was written")
		})
	}
}

func TestValueThatDoesNotDecodeIsAnInternalError(t *testing.T) {
	node, err := json.Marshal(map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{
		"name": "a"}})
	require.NoError(t, err)
	for name, value := range map[string][]byte{
		"empty": nil, "garbage": []byte("garbage"), "protobuf that ends early": []byte("k8s\x00\x0a"),
		"another kind": node,
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newMVCC(t)
			client.Put(key("a"), value)
			wantStatus(t, s.Get(t.Context(), key("a"), storage.GetOptions{}, &corev1.Pod{}),
				http.StatusInternalServerError, metav1.StatusReasonInternalError)
			wantStatus(t, s.GetList(t.Context(), prefix, everything(), newPodList()), http.StatusInternalServerError,
				metav1.StatusReasonInternalError)
		})
	}
}

func TestAListThatFailsHoldsWhatWasReadBefore(t *testing.T) {
	s, client := newMVCC(t)
	create(t, s, pod("a", ""))
	client.Put(key("b"), []byte("garbage"))
	list := newPodList()
	wantStatus(t, s.GetList(t.Context(), prefix, everything(), list), http.StatusInternalServerError,
		metav1.StatusReasonInternalError)
	items := list.(*corev1.PodList).Items
	assert.True(t, len(items) == 1 && items[0].Name == "a", "got %d items, want a alone", len(items))
}

func TestAnswerOfACallEndsWithItsContext(t *testing.T) {
	onBoth(t, func(t *testing.T, client Client) {
		s := newStore(t, client, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		err := s.GetList(ctx, prefix, everything(), newPodList())
		wantStatus(t, err, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
	})
}

func TestObjectTooLargeForEtcdIsRefusedAsSuch(t *testing.T) {
	s := newStore(t, newEtcd(t), nil)
	for _, size := range []int{1_600_000, 3_000_000} { // more than the server takes, more than the client sends
		p := pod("a", "")
		p.Annotations = map[string]string{"large": strings.Repeat("x", size)}
		err := s.Create(t.Context(), key("a"), p, nil)
		wantStatus(t, err, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge)
	}
}

package etcd3

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/server/mvcc"
)

// FuzzStoredBytes: whatever stands in etcd, reading it gives an object or an error, and an object that was read can be
// written back and read again.
func FuzzStoredBytes(f *testing.F) {
	for _, mediaType := range []string{MediaTypeProtobuf, MediaTypeJSON} {
		data, err := runtime.Encode(codec(f, mediaType), pod("a", "web"))
		require.NoError(f, err)
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
		require.Equal(t, listErr == nil, err == nil, "get says %v, list says %v", err, listErr)
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

package cachewatcher

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// jsonEncoder encodes, and counts.
type jsonEncoder struct{ n int }

func (e *jsonEncoder) encode(obj runtime.Object, w io.Writer) error {
	e.n++
	return json.NewEncoder(w).Encode(obj)
}

func TestACachingObjectIsTheObjectInEveryOtherRespect(t *testing.T) {
	p := pod("default/a", 7, "app=1")
	o := &cachingObject{metaRuntimeInterface: p}
	accessor, err := meta.Accessor(o)
	if err != nil || accessor.GetName() != "a" || accessor.GetResourceVersion() != "7" ||
		accessor.GetLabels()["app"] != "1" {
		t.Errorf("metadata: %v, %v", accessor, err)
	}
	for name, copied := range map[string]runtime.Object{"copy": o.DeepCopyObject(), "object": o.GetObject()} {
		copiedPod, ok := copied.(*corev1.Pod)
		require.True(t, ok && copiedPod != p, "%s: %T, the original: %v", name, copied, copiedPod == p)
		copiedPod.Labels["app"] = "2"
	}
	assert.Equal(t, p.Labels["app"], "1", "who writes to a copy writes to the object")
}

func TestAnEncodingThatFailsFailsForAll(t *testing.T) {
	o := &cachingObject{metaRuntimeInterface: pod("default/a", 7)}
	calls := 0
	fail := func(runtime.Object, io.Writer) error { calls++; return errors.New("no") }
	for range 2 {
		err := o.CacheEncode("x", fail, io.Discard)
		assert.True(t, err != nil && err.Error() == "no", "got %v", err)
	}
	assert.Equal(t, calls, 1, "tried %d times", calls)
}

func TestAnEncodingThatPanicsIsNotTakenForAnEmptyOne(t *testing.T) {
	o := &cachingObject{metaRuntimeInterface: pod("default/a", 7)}
	func() {
		defer func() { _ = recover() }()
		_ = o.CacheEncode("x", func(runtime.Object, io.Writer) error { panic("no") }, io.Discard)
	}()
	err := o.CacheEncode("x", (&jsonEncoder{}).encode, io.Discard)
	assert.True(t, errors.Is(err, errEncodingPanicked), "got %v", err)
}

func TestSplicingWritersTakeTheBytesAsTheyAre(t *testing.T) {
	o := &cachingObject{metaRuntimeInterface: pod("default/a", 7)}
	e := &jsonEncoder{}
	buffer := runtime.NewSpliceBuffer()
	for range 2 {
		buffer.Reset()
		require.NoError(t, o.CacheEncode("json", e.encode, buffer))
	}
	assert.True(t, e.n == 1 && &buffer.Bytes()[0] == &o.encodings[0].raw[0],
		"encoded %d times; or the bytes were copied", e.n)
}

// BenchmarkEncode is what it costs to write one event to n watchers in the same form.
func BenchmarkEncode(b *testing.B) {
	p := pod("default/a", 7, "app=1", "node=n1")
	for _, n := range []int{1, 2, 10, 100, 1000} {
		b.Run("shared/"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				o := &cachingObject{metaRuntimeInterface: p}
				e := &jsonEncoder{}
				for range n {
					_ = o.CacheEncode("json", e.encode, io.Discard)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/watcher")
		})
		b.Run("each/"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				e := &jsonEncoder{}
				for range n {
					_ = e.encode(p, io.Discard)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/watcher")
		})
	}
}

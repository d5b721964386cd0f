package parts

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podOf returns a pod of a template; image is what the template is about.
func podOf(name, node, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: name, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: image, Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0." + name, PodIPs: []corev1.PodIP{{IP: "10.0.0." + name}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Message: image}}},
	}
}

func sameMap(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

func TestPodsOfOneTemplateShareTheirParts(t *testing.T) {
	var kept Kept
	a, b, c := podOf("a", "node-1", "v1"), podOf("b", "node-2", "v1"), podOf("b", "node-1", "v1")
	wantA, wantB := a.DeepCopy(), b.DeepCopy()
	for _, pod := range []*corev1.Pod{a, b, b, c} { // twice: the objects of a streamed initial state come twice
		kept.Share(pod)
	}
	if !equality.Semantic.DeepEqual(a, wantA) || !equality.Semantic.DeepEqual(b, wantB) {
		t.Errorf("a pod has changed:\n%v\n%v", a, b)
	}
	for part, shared := range map[string]bool{
		"labels":      sameMap(a.Labels, b.Labels),
		"annotations": sameMap(a.Annotations, b.Annotations),
		"containers":  &a.Spec.Containers[0] == &b.Spec.Containers[0],
		"conditions":  &a.Status.Conditions[0] == &b.Status.Conditions[0],
		"fields":      a.ManagedFields[0].FieldsV1 == b.ManagedFields[0].FieldsV1,
		"managers":    &b.ManagedFields[0] == &c.ManagedFields[0],
	} {
		if !shared {
			t.Errorf("the %s are kept twice", part)
		}
	}
}

func TestWhatDiffersIsNotShared(t *testing.T) {
	var kept Kept
	a, b := podOf("a", "node-1", "v1"), podOf("b", "node-1", "v2")
	b.Labels["app"] = "db"
	b.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{}}`)
	want := b.DeepCopy()
	for _, obj := range []any{a, b, "no object at all"} {
		kept.Share(obj)
	}
	if !equality.Semantic.DeepEqual(b, want) {
		t.Errorf("got %v, want %v", b, want)
	}
}

// An object of a streamed initial state is shared twice, and the second time others know its parts already.
func TestPartsThatOthersKnowAreNotWrittenTo(t *testing.T) {
	var kept Kept
	a, b := podOf("a", "node-1", "v1"), podOf("a", "node-1", "v1")
	kept.Share(a)
	kept.Share(b)
	kept = Kept{} // as when there were too many
	kept.Share(podOf("c", "node-1", "v1"))
	before := b.ManagedFields[0].FieldsV1
	kept.Share(a)
	if b.ManagedFields[0].FieldsV1 != before {
		t.Error("sharing the parts of one pod has written to those of another")
	}
}

func TestOnlySoMuchIsKept(t *testing.T) {
	var kept Kept
	for i := range 3 * maxKept {
		kept.Share(podOf("a", "", fmt.Sprint("v", i)))
		if n := len(kept.specs); n > maxKept {
			t.Fatalf("%d specs are kept, want at most %d", n, maxKept)
		}
	}
}

// BenchmarkShare is what it costs the writer of a cache.
func BenchmarkShare(b *testing.B) {
	var kept Kept
	pod := podOf("a", "node-1", "v1")
	b.ReportAllocs()
	for b.Loop() {
		kept.Share(pod)
	}
}

// BenchmarkKept is what a cache keeps of a pod that it has decoded.
func BenchmarkKept(b *testing.B) {
	encoded, err := podOf("a", "node-1", "v1").Marshal()
	if err != nil {
		b.Fatal(err)
	}
	var kept Kept
	for name, share := range map[string]func(any){"as-decoded": func(any) {}, "shared": kept.Share} {
		b.Run(name, func(b *testing.B) {
			pods := make([]corev1.Pod, b.N)
			before := heapInUse()
			for i := range pods {
				if err := pods[i].Unmarshal(encoded); err != nil {
					b.Fatal(err)
				}
				share(&pods[i])
			}
			b.ReportMetric((heapInUse()-before)/float64(b.N)+float64(unsafe.Sizeof(pods[0])), "kept-B/op")
			runtime.KeepAlive(pods)
		})
	}
}

func heapInUse() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

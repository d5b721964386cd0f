package parts

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
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

func TestCachesHoldOnePodTogether(t *testing.T) {
	var kept Kept
	first, second := podOf("a", "node-1", "v1"), podOf("a", "node-1", "v1")
	want := first.DeepCopy()
	held := kept.Whole(first)
	if !equality.Semantic.DeepEqual(held, want) {
		t.Errorf("got %v, want %v", held, want)
	}
	if kept.Whole(second) != held || kept.Whole(held) != held {
		t.Error("equal pods are kept twice")
	}
	if kept.Whole("no pod") != "no pod" {
		t.Error("what is no pod has become another thing")
	}
}

// After a backup of etcd was restored, a UID and a version may come again with another content.
func TestPodsOfOneVersionThatDifferAreNotOne(t *testing.T) {
	var kept Kept
	same := podOf("a", "node-1", "v1")
	same.UID, same.ResourceVersion = "uid-1", "7"
	held := kept.Whole(same)
	for what, change := range map[string]func(*corev1.Pod){
		"image":  func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "v2" },
		"node":   func(pod *corev1.Pod) { pod.Spec.NodeName = "node-2" },
		"labels": func(pod *corev1.Pod) { pod.Labels["app"] = "db" },
		"kind":   func(pod *corev1.Pod) { pod.Kind = "Pod" },
	} {
		other := same.DeepCopy()
		change(other)
		want := other.DeepCopy()
		if got := kept.Whole(other); got == held || !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("another %s: got %v, want %v", what, got, want)
		}
	}
}

func TestAPodThatNoCacheHoldsIsForgotten(t *testing.T) {
	var kept Kept
	held := kept.Whole(podOf("a", "node-1", "v1"))
	for i := range 100 {
		kept.Whole(podOf(fmt.Sprint("b", i), "node-1", "v1"))
	}
	known := func() int {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		return len(kept.pods)
	}
	for deadline := time.Now().Add(30 * time.Second); known() > 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d pods are known, one of them is held", known())
		}
		runtime.GC()
	}
	if kept.Whole(podOf("a", "node-1", "v1")) != held {
		t.Error("the pod that is held was forgotten")
	}
}

// Caches that come and go, while pods are freed: each gets what it asked for, and all that hold a pod at once hold the same.
func TestManyCachesAtOnce(t *testing.T) {
	var kept Kept
	var caches sync.WaitGroup
	for range 4 {
		caches.Go(func() {
			for i := range 300 {
				want := podOf(fmt.Sprint("a", i%3), "node-1", "v1")
				got, again := kept.Whole(want.DeepCopy()), kept.Whole(want.DeepCopy())
				if got != again || !equality.Semantic.DeepEqual(got, want) {
					t.Errorf("got %v, then %v, want %v", got, again, want)
				}
				runtime.KeepAlive(got)
				if i%50 == 0 {
					runtime.GC()
				}
			}
		})
	}
	caches.Wait()
}

// BenchmarkWhole is what it costs a client: its first informer brings a pod that is new, the others bring equal ones.
func BenchmarkWhole(b *testing.B) {
	pod := podOf("a", "node-1", "v1")
	pod.ManagedFields = nil
	b.Run("new", func(b *testing.B) {
		var kept Kept
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			pod.ResourceVersion = strconv.Itoa(i)
			kept.Whole(pod)
		}
	})
	b.Run("held", func(b *testing.B) {
		var kept Kept
		held := kept.Whole(pod)
		b.ReportAllocs()
		for b.Loop() {
			kept.Whole(pod)
		}
		runtime.KeepAlive(held)
	})
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

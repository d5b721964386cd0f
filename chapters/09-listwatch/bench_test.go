package listwatch

import (
	"fmt"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/watch"
)

// repeated is a stream that brings the same frame again and again.
type repeated struct {
	frame string
	at    int
}

func (r *repeated) Read(buf []byte) (int, error) {
	n := copy(buf, r.frame[r.at:])
	r.at = (r.at + n) % len(r.frame)
	return n, nil
}

func (r *repeated) Close() error { return nil }

func fullPod() *corev1.Pod {
	p := pod("a", "7")
	p.Labels = map[string]string{"app": "web", "tier": "front", "pod-template-hash": "5d8f9c7b6"}
	p.Spec.NodeName = "node-1"
	for i := range 3 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("c%d", i), Image: "registry.example.com/team/image:v1.2.3",
			Env:       []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: fmt.Sprintf("c%d", i), Ready: true})
	}
	return p
}

func BenchmarkReadFrame(b *testing.B) {
	text := frame(watch.Modified, fullPod())
	frames := newFrameReader(&repeated{frame: text})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := frames.ReadFrame(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	text := frame(watch.Modified, fullPod())
	d := NewDecoder(io.ReadCloser(&repeated{frame: text}), decoder)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := d.Decode(); err != nil {
			b.Fatal(err)
		}
	}
}

package registry

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
)

func TestEveryMistakeInAPodIsNamedWithItsField(t *testing.T) {
	container := func(edit func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { edit(&p.Spec.Containers[0]) }
	}
	for want, edit := range map[string]func(*corev1.Pod){
		"metadata.name Invalid":   func(p *corev1.Pod) { p.Name = "A_b" },
		"metadata.labels Invalid": func(p *corev1.Pod) { p.Labels = map[string]string{"a b": "c"} },
		"metadata.annotations Invalid": func(p *corev1.Pod) {
			p.Annotations = map[string]string{
				"a b": "c"}
		},
		"spec.containers Required": func(p *corev1.Pod) { p.Spec.Containers = nil },
		"spec.containers[1].name Duplicate": func(p *corev1.Pod) {
			p.Spec.Containers = append(
				p.Spec.Containers, p.Spec.Containers[0])
		},
		"spec.restartPolicy NotSupported":    func(p *corev1.Pod) { p.Spec.RestartPolicy = "Sometimes" },
		"spec.nodeName Invalid":              func(p *corev1.Pod) { p.Spec.NodeName = "n_1" },
		"spec.activeDeadlineSeconds Invalid": func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(0) },
		"spec.terminationGracePeriodSeconds Invalid": func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds = seconds(-1)
		},
		"spec.containers[0].name Required":  container(func(c *corev1.Container) { c.Name = "" }),
		"spec.containers[0].image Required": container(func(c *corev1.Container) { c.Image = "" }),
		"spec.containers[0].imagePullPolicy NotSupported": container(func(c *corev1.Container) {
			c.ImagePullPolicy = "Rarely"
		}),
		"spec.containers[0].ports[0].containerPort Invalid": container(func(c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 70000}}
		}),
		"spec.containers[0].ports[0].protocol NotSupported": container(func(c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 1, Protocol: "IP"}}
		}),
		"spec.containers[0].env[0].name Required": container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{
				{Value: "1"}}
		}),
		"spec.containers[0].env[0].valueFrom Invalid": container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{
				{Name: "A", ValueFrom: &corev1.EnvVarSource{}}}
		}),
		"spec.containers[0].volumeMounts[0].name NotFound": container(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/"}}
		}),
		"spec.containers[0].resources.requests Invalid": container(tooMuch),
		"spec.volumes[0].name Required":                 func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{}} },
		"spec.volumes[0].configMap.name Required": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
		},
		"spec.volumes[0] Forbidden": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{}, HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		},
		"spec.containers[0].volumeMounts[1].mountPath Invalid": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v"}}
			mount := corev1.VolumeMount{Name: "v", MountPath: "/x"}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{mount, mount}
		},
		"spec.containers[0].env[0].valueFrom.configMapKeyRef.key Required": container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{}}}}
		}),
	} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.pods.Pod.Create(t.Context(), "default", pod("a", edit), &metav1.CreateOptions{})
			status := wantStatus(t, err, 422, metav1.StatusReasonInvalid)
			var got []string
			for _, cause := range status.Details.Causes {
				got = append(got, cause.Field+" "+strings.TrimPrefix(string(cause.Type), "FieldValue"))
			}
			assert.EqualSlices(t, got, []string{want}, "causes")
		})
	}
}

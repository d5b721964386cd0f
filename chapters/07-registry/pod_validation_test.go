package registry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEveryMistakeInAPodIsNamedWithItsField(t *testing.T) {
	container := func(edit func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { edit(&p.Spec.Containers[0]) }
	}
	for want, edit := range map[string]func(*corev1.Pod){
		"metadata.name":   func(p *corev1.Pod) { p.Name = "A_b" },
		"metadata.labels": func(p *corev1.Pod) { p.Labels = map[string]string{"a b": "c"} },
		"metadata.annotations": func(p *corev1.Pod) {
			p.Annotations = map[string]string{
				"a b": "c"}
		},
		"spec.containers": func(p *corev1.Pod) { p.Spec.Containers = nil },
		"spec.containers[1].name": func(p *corev1.Pod) {
			p.Spec.Containers = append(
				p.Spec.Containers, p.Spec.Containers[0])
		},
		"spec.restartPolicy":         func(p *corev1.Pod) { p.Spec.RestartPolicy = "Sometimes" },
		"spec.nodeName":              func(p *corev1.Pod) { p.Spec.NodeName = "n_1" },
		"spec.activeDeadlineSeconds": func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(0) },
		"spec.terminationGracePeriodSeconds": func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds = seconds(-1)
		},
		"spec.containers[0].image": container(func(c *corev1.Container) { c.Image = "" }),
		"spec.containers[0].imagePullPolicy": container(func(c *corev1.Container) {
			c.ImagePullPolicy = "Rarely"
		}),
		"spec.containers[0].ports[0].containerPort": container(func(c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 70000}}
		}),
		"spec.containers[0].ports[0].protocol": container(func(c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 1, Protocol: "IP"}}
		}),
		"spec.containers[0].env[0].name": container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{
				{Value: "1"}}
		}),
		"spec.containers[0].env[0].valueFrom": container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{
				{Name: "A", ValueFrom: &corev1.EnvVarSource{}}}
		}),
		"spec.containers[0].volumeMounts[0].name": container(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/"}}
		}),
		"spec.volumes[0].name": func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{}} },
		"spec.volumes[0].configMap.name": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
		},
		"spec.volumes[0]": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{}, HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		},
		"spec.containers[0].volumeMounts[1].mountPath": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v"}}
			mount := corev1.VolumeMount{Name: "v", MountPath: "/x"}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{mount, mount}
		},
		"spec.containers[0].env[0].valueFrom.configMapKeyRef.key": container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{}}}}
		}),
	} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.pods.Pod.Create(t.Context(), "default", pod("a", edit), &metav1.CreateOptions{})
			status := wantStatus(t, err, 422, metav1.StatusReasonInvalid)
			if len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != want {
				t.Errorf("causes: got %+v, want one at %s", status.Details.Causes, want)
			}
		})
	}
}

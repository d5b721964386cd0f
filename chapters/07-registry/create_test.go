package registry

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
)

func TestCreateSetsWhatOnlyTheServerKnows(t *testing.T) {
	w := newWorld(t)
	got := w.create(pod("a", func(p *corev1.Pod) {
		p.UID, p.Generation = "mine", 7
		p.CreationTimestamp = metav1.NewTime(epoch.AddDate(-1, 0, 0))
		p.DeletionTimestamp = &p.CreationTimestamp
		p.Status.Phase = corev1.PodRunning
	}))
	assert.True(t, got.UID != "" && got.UID != "mine", "uid: got %q, want one of the server's", got.UID)
	assert.True(t, got.CreationTimestamp.Time.Equal(epoch),
		"creationTimestamp: got %v, want %v", got.CreationTimestamp, epoch)
	assert.True(t, got.Generation == 1 && got.DeletionTimestamp == nil,
		"metadata: got generation %d, deletionTimestamp %v", got.Generation, got.DeletionTimestamp)
	assert.True(t, got.Status.Phase == corev1.PodPending && got.Namespace == "default" && got.ResourceVersion != "",
		"got phase %q namespace %q version %q", got.Status.Phase, got.Namespace, got.ResourceVersion)
}

func TestCreateFillsInDefaults(t *testing.T) {
	w := newWorld(t)
	got := w.create(pod("a", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image = "registry:5000/i"
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
	}))
	spec, c := got.Spec, got.Spec.Containers[0]
	assert.True(t, spec.RestartPolicy == "Always" && spec.DNSPolicy == "ClusterFirst" &&
		spec.SchedulerName == "default-scheduler" && *spec.TerminationGracePeriodSeconds == 30,
		"spec: got %q %q %q %d", spec.RestartPolicy, spec.DNSPolicy, spec.SchedulerName,
		*spec.TerminationGracePeriodSeconds)
	assert.True(t, c.ImagePullPolicy == "Always" && c.TerminationMessagePath == "/dev/termination-log" &&
		c.Ports[0].Protocol == "TCP",
		"container: got %q %q %q", c.ImagePullPolicy, c.TerminationMessagePath, c.Ports[0].Protocol)
}

func TestCreateGeneratesANameUntilOneIsFree(t *testing.T) {
	w := newWorld(t)
	w.create(pod("web-1"))
	w.create(pod("web-2"))
	n := 0
	w.pods.Pod.generateName = func(base string) string { n++; return base + string(rune('0'+n)) }
	got := w.create(pod("", func(p *corev1.Pod) { p.GenerateName = "web-" }))
	assert.Equal(t, "web-3", got.Name, "name")
}

func TestCreateGivesUpWhenNoGeneratedNameIsFree(t *testing.T) {
	w := newWorld(t)
	w.create(pod("web-x"))
	_, err := w.pods.Pod.Create(t.Context(), "default", pod("", func(p *corev1.Pod) { p.GenerateName = "web-" }),
		&metav1.CreateOptions{})
	status := wantStatus(t, err, 409, metav1.StatusReasonAlreadyExists)
	assert.True(t, status.Details != nil && status.Details.RetryAfterSeconds == 1,
		"details: got %+v, want to be told to try again in a second", status.Details)
}

func TestGeneratedNamesFitALabel(t *testing.T) {
	assert.Equal(t, 63, len(SimpleName(strings.Repeat("a", 300))), "length")
}

func TestCreateRefuses(t *testing.T) {
	w := newWorld(t)
	w.create(pod("taken"))
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		code   int
		reason metav1.StatusReason
	}{
		"another namespace": {pod("a", func(p *corev1.Pod) { p.Namespace = "other" }), 400,
			metav1.StatusReasonBadRequest},
		"a resource version": {pod("a", func(p *corev1.Pod) { p.ResourceVersion = "5" }), 400,
			metav1.StatusReasonBadRequest},
		"a taken name": {pod("taken"), 409, metav1.StatusReasonAlreadyExists},
		"no name":      {pod(""), 422, metav1.StatusReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
				_, err := w.pods.Pod.Create(t.Context(), "default", c.pod.DeepCopy(),
					&metav1.CreateOptions{DryRun: dryRun})
				wantStatus(t, err, c.code, c.reason)
			}
		})
	}
}

func TestCreateSaysWhenWhatIsInTheWayIsGoing(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a", finalized))
	w.delete("a", metav1.DeleteOptions{})
	_, err := w.pods.Pod.Create(t.Context(), "default", pod("a"), &metav1.CreateOptions{})
	status := wantStatus(t, err, 409, metav1.StatusReasonAlreadyExists)
	assert.True(t, strings.HasPrefix(status.Message, "object is being deleted"), "message: got %q", status.Message)
}

func tooMuch(c *corev1.Container) {
	c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
	c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2")}
}

func TestDryRunsChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a"))
	w.create(pod("b", onNode))
	before := w.etcd.Revision()
	all := []string{metav1.DryRunAll}
	for name, run := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			out, err := w.pods.Pod.Create(ctx, "default", pod("new"), &metav1.CreateOptions{DryRun: all})
			assert.False(t, err == nil && out.(*corev1.Pod).Status.Phase != corev1.PodPending,
				"create: got %+v, want what would have been stored", out)
			return err
		},
		"update": func(ctx context.Context) error {
			out, _, err := w.pods.Pod.Update(ctx, "default", "a",
				editing(func(p *corev1.Pod) { p.Labels = map[string]string{"x": "y"} }), false,
				&metav1.UpdateOptions{DryRun: all})
			assert.False(t, err == nil && out.(*corev1.Pod).Labels["x"] != "y",
				"update: got %+v, want what would have been stored", out)
			return err
		},
		"delete at once": func(ctx context.Context) error {
			_, _, err := w.pods.Pod.Delete(ctx, "default", "a", &metav1.DeleteOptions{DryRun: all})
			return err
		},
		"delete gracefully": func(ctx context.Context) error {
			_, _, err := w.pods.Pod.Delete(ctx, "default", "b", &metav1.DeleteOptions{DryRun: all})
			return err
		},
		"bind": func(ctx context.Context) error {
			_, err := w.pods.Binding.Create(ctx, "default", "a", binding("a", "n1"), &metav1.CreateOptions{DryRun: all})
			return err
		},
	} {
		assert.NoError(t, run(t.Context()), name)
		assert.Equal(t, before, w.etcd.Revision(), "%s: the revision went from %d to", name, before)
	}
}

func TestEveryMistakeInAPodIsNamedWithItsField(t *testing.T) {
	container := func(edit func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { edit(&p.Spec.Containers[0]) }
	}
	for want, edit := range map[string]func(*corev1.Pod){
		"metadata.name Invalid":   func(p *corev1.Pod) { p.Name = "A_b" },
		"metadata.labels Invalid": func(p *corev1.Pod) { p.Labels = map[string]string{"a b": "c"} },
		"metadata.annotations Invalid": func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a b": "c"}
		},
		"spec.containers Required": func(p *corev1.Pod) { p.Spec.Containers = nil },
		"spec.containers[1].name Duplicate": func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
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
		"spec.containers[0].resources.requests Invalid": container(tooMuch),
	} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.pods.Pod.Create(t.Context(), "default", pod("a", edit), &metav1.CreateOptions{})
			status := wantStatus(t, err, 422, metav1.StatusReasonInvalid)
			var got []string
			for _, cause := range status.Details.Causes {
				got = append(got, cause.Field+" "+strings.TrimPrefix(string(cause.Type), "FieldValue"))
			}
			assert.EqualSlices(t, []string{want}, got, "causes")
		})
	}
}

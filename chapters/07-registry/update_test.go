package registry

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestUpdateOfAnOldVersionConflicts(t *testing.T) {
	w := newWorld(t)
	old := w.create(pod("a"))
	w.mustUpdate(w.pods.Pod, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "1"} })
	_, err := w.update(w.pods.Pod, "a", func(p *corev1.Pod) { p.ResourceVersion = old.ResourceVersion })
	status := wantStatus(t, err, 409, metav1.StatusReasonConflict)
	assert.True(t, strings.Contains(status.Message, optimisticLockErrorMsg), "message: got %q", status.Message)
}

func TestUpdateWithoutAVersionOverwrites(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a"))
	got := w.mustUpdate(w.pods.Pod, "a", func(p *corev1.Pod) {
		p.ResourceVersion = ""
		p.Labels = map[string]string{"x": "1"}
	})
	assert.Equal(t, "1", got.Labels["x"])
}

// versioned is a strategy that allows no unconditional update.
type versioned struct{ Strategy }

func (versioned) AllowUnconditionalUpdate() bool { return false }

func TestUpdateWithoutAVersionIsRefusedWhereItIsRequired(t *testing.T) {
	w := newWorld(t)
	resource := Pods()
	resource.Strategy = versioned{resource.Strategy}
	config := w.config(resource)
	w.create(pod("a"))
	_, _, err := New(config).Update(t.Context(), "default", "a", replacing(pod("a")), false, &metav1.UpdateOptions{})
	status := wantStatus(t, err, 422, metav1.StatusReasonInvalid)
	assert.Equal(t, `Pod "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified `+
		`for an update`, status.Message)
}

func TestUpdateOfAMissingEventCreatesIt(t *testing.T) {
	w := newWorld(t)
	events := New(w.config(kindOf("events")))
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Namespace: "default"}}
	_, created, err := events.Update(t.Context(), "default", "e", replacing(event), false, &metav1.UpdateOptions{})
	require.True(t, err == nil && created, "first: got created %v, %v", created, err)
	event.Message = "again"
	_, created, err = events.Update(t.Context(), "default", "e", replacing(event), false, &metav1.UpdateOptions{})
	assert.True(t, err == nil && !created, "second: got created %v, %v", created, err)
}

// Each edit is of a pod that has a gate and a minute to live.
func TestAnUpdateChangesWhatItMay(t *testing.T) {
	const refused = "422 Invalid"
	for name, c := range map[string]struct {
		edit func(*corev1.Pod)
		want string // phase, node and generation afterwards, or why not
	}{
		"labels, and a generation": {func(p *corev1.Pod) {
			p.Labels, p.Generation = map[string]string{"x": "1"}, 9
		}, `Pending "" 1`},
		"its status":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, `Pending "" 1`},
		"image":            {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "i:3" }, `Pending "" 2`},
		"less time":        {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(30) }, `Pending "" 2`},
		"no gates":         {func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }, `Pending "" 2`},
		"added toleration": {func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}} }, `Pending "" 2`},
		"node":             {onNode, refused},
		"container": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d", Image: "i"})
		}, refused},
		"restart policy": {func(p *corev1.Pod) { p.Spec.RestartPolicy = "Never" }, refused},
		"another gate":   {func(p *corev1.Pod) { p.Spec.SchedulingGates[0].Name = "h" }, refused},
		"more time":      {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(61) }, refused},
		"no limit":       {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = nil }, refused},
		"another object": {func(p *corev1.Pod) { p.UID = "other" }, refused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(pod("a", func(p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
				p.Spec.ActiveDeadlineSeconds = seconds(60)
			}))
			p, err := w.update(w.pods.Pod, "a", c.edit)
			got := ""
			if err == nil {
				got = fmt.Sprintf("%s %q %d", p.Status.Phase, p.Spec.NodeName, p.Generation)
			} else {
				status := err.(apierrors.APIStatus).Status()
				got = fmt.Sprint(status.Code, " ", status.Reason)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestBindingPutsAPodOnANodeOnce(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a"))
	_, err := w.pods.Binding.Create(t.Context(), "default", "a", binding("a", "n1"), &metav1.CreateOptions{})
	require.NoError(t, err)
	got := w.get("a")
	assert.Equal(t, "n1", got.Spec.NodeName, "node")
	assert.True(t, len(got.Status.Conditions) == 1 && got.Status.Conditions[0].Type == corev1.PodScheduled &&
		got.Status.Conditions[0].Status == corev1.ConditionTrue, "conditions: got %+v", got.Status.Conditions)
	_, err = w.pods.Binding.Create(t.Context(), "default", "a", binding("a", "n2"), &metav1.CreateOptions{})
	status := wantStatus(t, err, 409, metav1.StatusReasonConflict)
	assert.True(t, strings.Contains(status.Message, `already assigned to node "n1"`), "message: got %q", status.Message)
}

func TestBindingRefuses(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a"))
	w.create(pod("going", finalized))
	w.delete("going", metav1.DeleteOptions{})
	gated := w.create(pod("gated", func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
	}))
	assert.Equal(t, corev1.PodReasonSchedulingGated, gated.Status.Conditions[0].Reason)
	stranger := binding("a", "n1")
	stranger.UID = "other"
	for name, c := range map[string]struct {
		pod     string
		binding *corev1.Binding
		code    int
		reason  metav1.StatusReason
	}{
		"another name":        {"a", binding("b", "n1"), 400, metav1.StatusReasonBadRequest},
		"no node":             {"a", binding("a", ""), 422, metav1.StatusReasonInvalid},
		"a missing pod":       {"b", binding("b", "n1"), 404, metav1.StatusReasonNotFound},
		"a gated pod":         {"gated", binding("gated", "n1"), 409, metav1.StatusReasonConflict},
		"a pod being deleted": {"going", binding("going", "n1"), 409, metav1.StatusReasonConflict},
		"another uid":         {"a", stranger, 409, metav1.StatusReasonConflict},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.pods.Binding.Create(t.Context(), "default", c.pod, c.binding, &metav1.CreateOptions{})
			wantStatus(t, err, c.code, c.reason)
		})
	}
}

func TestOptionsOfADeletionAreCheckedWhateverTheWayToIt(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a"))
	for name, remove := range map[string]func(*metav1.DeleteOptions) error{
		"one": func(options *metav1.DeleteOptions) error {
			_, _, err := w.pods.Pod.Delete(t.Context(), "default", "a", options)
			return err
		},
		"a collection without objects": func(options *metav1.DeleteOptions) error {
			_, err := w.pods.Pod.DeleteCollection(t.Context(), "other", options, &metainternalversion.ListOptions{})
			return err
		},
	} {
		for _, options := range []metav1.DeleteOptions{
			{DryRun: []string{"x"}}, {PropagationPolicy: new(metav1.DeletionPropagation("x"))},
			//lint:ignore SA1019 clients of before 1.7 still say it so
			{OrphanDependents: new(true), PropagationPolicy: new(metav1.DeletePropagationOrphan)},
		} {
			t.Run(name, func(t *testing.T) {
				status := wantStatus(t, remove(&options), 422, metav1.StatusReasonInvalid)
				assert.Equal(t, "DeleteOptions", status.Details.Kind)
			})
		}
	}
	assert.True(t, w.get("a") != nil, "the pod is gone")
}

func binding(pod, node string) *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node",
		Name: node}}
}

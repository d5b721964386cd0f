package registry

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func TestUpdateOfAnOldVersionConflicts(t *testing.T) {
	w := newWorld(t)
	log := probe.NewLog(clock.RealClock{}, 0)
	w.pods.Pod.probe = probe.New(log)
	old := w.create(pod("a"))
	now := w.mustUpdate(w.pods.Pod, func(p *corev1.Pod) { p.Labels = map[string]string{"x": "1"} })
	_, err := w.update(w.pods.Pod, func(p *corev1.Pod) { p.ResourceVersion = old.ResourceVersion })
	status := wantStatus(t, err, 409, metav1.StatusReasonConflict)
	assert.True(t, strings.Contains(status.Message, optimisticLockErrorMsg), "message: got %q", status.Message)
	said := probetest.Records(log, probe.WriteRefused)
	require.Equal(t, 1, len(said), "reports of probe.WriteRefused")
	want := fmt.Sprintf("The write of default/a names version %s, and etcd has %s.", old.ResourceVersion,
		now.ResourceVersion)
	assert.Equal(t, want, said[0].Sentence())
}

func TestUpdateWithoutAVersionOverwrites(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a"))
	got := w.mustUpdate(w.pods.Pod, func(p *corev1.Pod) {
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
		"no policy":  {func(p *corev1.Pod) { p.Spec.RestartPolicy = "" }, `Pending "" 1`}, // the default's
		"its status": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, `Pending "" 1`},
		"image":      {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "i:3" }, `Pending "" 2`},
		"less time":  {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(30) }, `Pending "" 2`},
		"no gates":   {func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }, `Pending "" 2`},
		"added toleration": {func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}} },
			`Pending "" 2`},
		"node": {onNode, refused},
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
			p, err := w.update(w.pods.Pod, c.edit)
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
	require.Value(w.pods.Binding.Create(t.Context(), "default", "a", binding("a", "n1"), &metav1.CreateOptions{}))(t)
	got := w.stored()
	assert.Equal(t, "n1", got.Spec.NodeName, "node")
	assert.True(t, len(got.Status.Conditions) == 1 && got.Status.Conditions[0].Type == corev1.PodScheduled &&
		got.Status.Conditions[0].Status == corev1.ConditionTrue, "conditions: got %+v", got.Status.Conditions)
	_, err := w.pods.Binding.Create(t.Context(), "default", "a", binding("a", "n2"), &metav1.CreateOptions{})
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
	assert.True(t, w.stored() != nil, "the pod is gone")
}

func binding(pod, node string) *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node",
		Name: node}}
}

// replacing returns an UpdatedObjectInfo that ignores what is stored.
func replacing(obj runtime.Object) UpdatedObjectInfo {
	return func(context.Context, runtime.Object) (runtime.Object, error) { return obj.DeepCopyObject(), nil }
}

func TestSelectorsAndNamespaceBecomeOneKey(t *testing.T) {
	for name, c := range map[string]struct {
		resource  *Resource
		namespace string
		field     string
		key       string
		recursive bool
	}{
		"everything":              {Pods(), "", "", "/registry/pods", true},
		"one namespace":           {Pods(), "default", "", "/registry/pods/default", true},
		"a name in a namespace":   {Pods(), "default", "metadata.name=a", "/registry/pods/default/a", false},
		"a name in any namespace": {Pods(), "", "metadata.name=a", "/registry/pods", true},
		"a selected namespace":    {Pods(), "", "metadata.namespace=x", "/registry/pods/x", true},
		"a selected namespace and name": {Pods(), "", "metadata.namespace=x,metadata.name=a", "/registry/pods/x/a",
			false},
		"what cannot be a namespace":     {Pods(), "", "metadata.namespace=..", "/registry/pods", true},
		"another selected namespace":     {Pods(), "default", "metadata.namespace=x", "/registry/pods/default", true},
		"a node, which has no namespace": {kindOf("nodes"), "", "metadata.name=n1", "/registry/minions/n1", false},
		"a field that pins nothing":      {Pods(), "default", "spec.nodeName=n1", "/registry/pods/default", true},
	} {
		t.Run(name, func(t *testing.T) {
			store := New(Config{Resource: c.resource})
			list := &metainternalversion.ListOptions{FieldSelector: require.Value(fields.ParseSelector(c.field))(t)}
			key, opts, err := store.storageOptions(c.namespace, list)
			assert.True(t, key == c.key && opts.Recursive == c.recursive && err == nil,
				"got %s, recursive %v, %v; want %s, %v", key, opts.Recursive, err, c.key, c.recursive)
			list.Continue = "token"
			later, _, err := store.storageOptions(c.namespace, list)
			assert.True(t, err == nil && (later == key || !c.recursive), "a later page reads %s", later)
		})
	}
}

func TestOtherKindsKeepTheirRules(t *testing.T) {
	w := newWorld(t)
	configMaps := New(w.config(kindOf("configmaps")))
	fixed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"},
		Immutable: new(true)}
	require.Value(configMaps.Create(t.Context(), "default", fixed.DeepCopy(), &metav1.CreateOptions{}))(t)
	fixed.Data["k"] = "2"
	_, _, err := configMaps.Update(t.Context(), "default", "a", replacing(fixed), false, &metav1.UpdateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)

	namespaces := New(w.config(kindOf("namespaces")))
	out := require.Value(namespaces.Create(t.Context(), "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		&metav1.CreateOptions{}))(t)
	got := out.(*corev1.Namespace)
	assert.True(t, got.Status.Phase == corev1.NamespaceActive && got.Labels[corev1.LabelMetadataName] == "x",
		"namespace: got %+v", got)

	events := New(w.config(kindOf("events")))
	stray := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{
		Namespace: "other"}}
	_, err = events.Create(t.Context(), "default", stray, &metav1.CreateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)
}

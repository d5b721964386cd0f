package registry

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

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
		})
	}
}

func TestListSelects(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a", onNode))
	w.create(pod("b", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "1"} }))
	field := func(name, value string) metainternalversion.ListOptions {
		return metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(name, value)}
	}
	label := metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"x": "1"})}
	for name, c := range map[string]struct {
		options metainternalversion.ListOptions
		want    []string
	}{
		"all":       {metainternalversion.ListOptions{}, []string{"a", "b"}},
		"by label":  {label, []string{"b"}},
		"by node":   {field("spec.nodeName", "n1"), []string{"a"}},
		"by name":   {field("metadata.name", "b"), []string{"b"}},
		"by status": {field("status.phase", "Running"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			list := require.Value(w.pods.Pod.List(t.Context(), "default", &c.options))(t)
			var got []string
			for _, item := range list.(*corev1.PodList).Items {
				got = append(got, item.Name)
			}
			assert.EqualSlices(t, c.want, got)
		})
	}
}

func TestAnInvalidVersionIsABadRequest(t *testing.T) {
	w := newWorld(t)
	_, err := w.pods.Pod.List(t.Context(), "default", &metainternalversion.ListOptions{ResourceVersion: "x"})
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest)
}

func TestAGracefulDeletionIsSeenAsTwoEvents(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(pod("a"))
		watching, err := w.pods.Pod.Watch(t.Context(), "default", &metainternalversion.ListOptions{
			ResourceVersion: "0", SendInitialEvents: new(true)})
		require.NoError(t, err)
		defer synctest.Wait()
		defer watching.Stop()
		synctest.Wait() // the state has been read
		w.delete("a", metav1.DeleteOptions{})
		for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			event := <-watching.ResultChan()
			require.Equal(t, want, event.Type)
		}
	})
}

func TestOtherKindsKeepTheirRules(t *testing.T) {
	w := newWorld(t)
	configMaps := New(w.config(kindOf("configmaps")))
	fixed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"},
		Immutable: new(true)}
	_, err := configMaps.Create(t.Context(), "default", fixed.DeepCopy(), &metav1.CreateOptions{})
	require.NoError(t, err)
	fixed.Data["k"] = "2"
	_, _, err = configMaps.Update(t.Context(), "default", "a", replacing(fixed), false, &metav1.UpdateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)

	namespaces := New(w.config(kindOf("namespaces")))
	out, err := namespaces.Create(t.Context(), "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		&metav1.CreateOptions{})
	require.NoError(t, err)
	got := out.(*corev1.Namespace)
	assert.True(t, got.Status.Phase == corev1.NamespaceActive && got.Labels[corev1.LabelMetadataName] == "x",
		"namespace: got %+v", got)

	nodes := New(w.config(kindOf("nodes")))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		{Key: "k", Effect: "Perhaps"}}}}
	_, err = nodes.Create(t.Context(), "", node, &metav1.CreateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)
	node.Spec = corev1.NodeSpec{PodCIDRs: []string{"nonsense"}}
	_, err = nodes.Create(t.Context(), "", node, &metav1.CreateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)

	events := New(w.config(kindOf("events")))
	stray := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{
		Namespace: "other"}}
	_, err = events.Create(t.Context(), "default", stray, &metav1.CreateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)
}

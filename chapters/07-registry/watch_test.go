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

// replacing is an UpdatedObjectInfo that ignores what is stored.
type replacing struct{ obj runtime.Object }

func (r replacing) Preconditions() *metav1.Preconditions { return nil }

func (replacing) AllowsCreate() bool { return false }

func (r replacing) UpdatedObject(context.Context, runtime.Object) (runtime.Object, error) {
	return r.obj.DeepCopyObject(), nil
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
		"a node, which has no namespace": {Nodes(), "", "metadata.name=n1", "/registry/minions/n1", false},
		"a field that pins nothing":      {Pods(), "default", "spec.nodeName=n1", "/registry/pods/default", true},
	} {
		t.Run(name, func(t *testing.T) {
			store := New(Config{Resource: c.resource})
			selector, err := fields.ParseSelector(c.field)
			require.NoError(t, err)
			p := store.predicate(&metainternalversion.ListOptions{FieldSelector: selector})
			key, recursive, err := store.keyFor(c.namespace, &p)
			assert.True(t, key == c.key && recursive == c.recursive && err == nil,
				"got %s, recursive %v, %v; want %s, %v", key, recursive, err, c.key, c.recursive)
		})
	}
}

func TestListSelects(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a", onNode))
	w.create(pod("b", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "1"} }))
	for name, c := range map[string]struct {
		options metainternalversion.ListOptions
		want    []string
	}{
		"all": {metainternalversion.ListOptions{}, []string{"a", "b"}},
		"by label": {metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"x": "1"})},
			[]string{"b"}},
		"by node": {metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName",
			"n1")}, []string{"a"}},
		"by name": {metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name",
			"b")}, []string{"b"}},
		"by status": {metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("status.phase",
			"Running")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := w.pods.Pod.List(t.Context(), "default", &c.options)
			require.NoError(t, err)
			var got []string
			for _, item := range list.(*corev1.PodList).Items {
				got = append(got, item.Name)
			}
			assert.EqualSlices(t, got, c.want)
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
			require.Equal(t, event.Type, want)
		}
	})
}

func TestPodsAnswerForTheFieldsThatTheyList(t *testing.T) {
	obj := pod("a")
	obj.Spec.NodeName, obj.Spec.HostNetwork = "n1", true
	obj.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
	_, set, err := podAttrs(obj)
	require.NoError(t, err)
	for _, field := range Pods().Fields {
		assert.True(t, set.Has(field), "%s is listed and unknown", field)
	}
	for field, want := range map[string]string{
		"metadata.name": "a", "metadata.namespace": obj.Namespace, "spec.nodeName": "n1", "spec.hostNetwork": "true",
		"status.podIP": "10.0.0.1",
		"status.phase": string(obj.Status.Phase), "spec.priority": "",
	} {
		assert.Equal(t, set.Get(field), want, field)
	}
	assert.False(t, set.Has("spec.priority"), "a field is known that is not listed")
}

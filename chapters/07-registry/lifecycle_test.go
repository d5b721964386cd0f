package registry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// lifecycle is a world in which a client asks for namespaces.
func lifecycle(t *testing.T) (w *world, namespaces *Store, finalize *FinalizeREST) {
	t.Helper()
	w = newWorld(t)
	namespaces = New(w.config(Namespaces()))
	config := w.config(Pods())
	config.Namespaces = namespaces
	w.pods = NewPodStorage(config)
	for _, name := range []string{"default", "other"} {
		if _, err := namespaces.Create(t.Context(), "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return w, namespaces, NewFinalizeREST(namespaces)
}

func TestNothingIsCreatedInANamespaceThatIsNotThere(t *testing.T) {
	w, _, _ := lifecycle(t)
	w.create(pod("a"))
	_, err := w.pods.Pod.Create(t.Context(), "nowhere", pod("a"), &metav1.CreateOptions{})
	status := wantStatus(t, err, 404, metav1.StatusReasonNotFound)
	assert.Equal(t, status.Message, `namespaces "nowhere" not found`, "message")
}

func TestADeletedNamespaceRefusesContentAndWaitsForItsFinalizer(t *testing.T) {
	w, namespaces, finalize := lifecycle(t)
	out, immediate, err := namespaces.Delete(t.Context(), "", "other", &metav1.DeleteOptions{})
	require.True(t, err == nil && !immediate, "delete: got immediate %v, %v", immediate, err)
	namespace := out.(*corev1.Namespace)
	assert.True(t, namespace.Status.Phase == corev1.NamespaceTerminating && namespace.DeletionTimestamp != nil,
		"got %+v", namespace)
	_, err = w.pods.Pod.Create(t.Context(), "other", pod("a"), &metav1.CreateOptions{})
	status := wantStatus(t, err, 403, metav1.StatusReasonForbidden)
	if len(status.Details.Causes) != 1 || status.Details.Causes[0].Type != corev1.NamespaceTerminatingCause {
		t.Errorf("causes: got %+v", status.Details.Causes)
	}
	// An ordinary update does not reach the finalizers.
	namespace.Spec.Finalizers = nil
	if _, _, err := namespaces.Update(t.Context(), "", "other", replacing{namespace},
		&metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	out, err = namespaces.Get(t.Context(), "", "other", &metav1.GetOptions{})
	require.True(t, err == nil && len(out.(*corev1.Namespace).Spec.Finalizers) == 1,
		"after an update: got %+v, %v", out, err)
	namespace = out.(*corev1.Namespace)
	namespace.Spec.Finalizers, namespace.Labels = nil, map[string]string{"not": "here"}
	if _, _, err := finalize.Update(t.Context(), "", "other", replacing{namespace},
		&metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = namespaces.Get(t.Context(), "", "other", &metav1.GetOptions{})
	wantStatus(t, err, 404, metav1.StatusReasonNotFound)
}

func TestTheSystemsNamespacesStay(t *testing.T) {
	_, namespaces, _ := lifecycle(t)
	_, _, err := namespaces.Delete(t.Context(), "", "default", &metav1.DeleteOptions{})
	status := wantStatus(t, err, 403, metav1.StatusReasonForbidden)
	assert.Equal(t, status.Message, `namespaces "default" is forbidden: this namespace may not be deleted`, "message")
}

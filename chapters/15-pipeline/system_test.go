package pipeline

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestTheSystemsNamespacesAndTheNodesAreThere(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		var namespaces corev1.NamespaceList
		err := w.client.Get().Resource("namespaces").Do(t.Context()).Into(&namespaces)
		assert.True(t, err == nil && len(namespaces.Items) == 4, "namespaces: got %d, %v", len(namespaces.Items), err)
		var nodes corev1.NodeList
		err = w.client.Get().Resource("nodes").Do(t.Context()).Into(&nodes)
		require.True(t, err == nil && len(nodes.Items) == 2, "nodes: got %+v, %v", nodes.Items, err)
		for _, node := range nodes.Items {
			ready := false
			for _, condition := range node.Status.Conditions {
				ready = ready || condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
			}
			assert.True(t, ready, "%s: got %+v, want Ready", node.Name, node.Status.Conditions)
		}
	})
}

func TestADeletedNamespaceTakesItsContentAlong(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		namespaces := func() *corev1.Namespace {
			namespace := &corev1.Namespace{}
			err := w.client.Get().Resource("namespaces").Name("n").Do(t.Context()).Into(namespace)
			if apierrors.IsNotFound(err) {
				return nil
			}
			require.NoError(t, err)
			return namespace
		}
		must := func(err error) {
			t.Helper()
			require.NoError(t, err)
		}
		pod := podNamed("a", corev1.RestartPolicyAlways)
		err := w.client.Post().Namespace("n").Resource("pods").Body(pod).Do(t.Context()).Error()
		require.Fails(t, err, apierrors.IsNotFound, "before the namespace is there")
		must(w.client.Post().Resource("namespaces").Body(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}).
			Do(t.Context()).Error())
		must(w.client.Post().Namespace("n").Resource("pods").Body(pod).Do(t.Context()).Error())
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		must(w.client.Post().Namespace("n").Resource("configmaps").Body(configMap).Do(t.Context()).Error())
		time.Sleep(time.Minute) // the pod runs: it will need time to stop
		must(w.client.Delete().Resource("namespaces").Name("n").Do(t.Context()).Error())
		if namespace := namespaces(); namespace == nil || namespace.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("just deleted: got %+v, want Terminating", namespace)
		}
		time.Sleep(time.Minute)
		assert.Equal(t, namespaces(), nil, "a minute later")
		var pods corev1.PodList
		must(w.client.Get().Resource("pods").Do(t.Context()).Into(&pods))
		assert.Equal(t, len(pods.Items), 0, "pods")
	})
}

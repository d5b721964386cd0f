package upstream

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
)

// TestTheTypedClientDoesAllThereIs goes through every verb and subresource with bodies in protobuf.
func TestTheTypedClientDoesAllThereIs(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t, alone...)
	config, asked := configFor(v)
	core := must(kubernetes.NewForConfig(protobuf(config))).CoreV1()
	ctx, pods := t.Context(), core.Pods("default")

	pod := must(pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "generated-", Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/main:1"}}},
	}, metav1.CreateOptions{}))
	request := asked.read()[0]
	assert.True(t, strings.HasSuffix(request, " protobuf"), "the body was not protobuf: %s", request)
	if !strings.HasPrefix(pod.Name, "generated-") || pod.UID == "" || pod.Status.Phase != corev1.PodPending ||
		pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("created: got %+v", pod)
	}
	must(core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{}))
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{
		Kind: "Node", Name: "n1"}}
	assert.NoError(t, pods.Bind(ctx, binding, metav1.CreateOptions{}), "bind")
	bound := must(pods.Get(ctx, pod.Name, metav1.GetOptions{}))
	assert.Equal(t, bound.Spec.NodeName, "n1", "bound: got node")

	bound.Status.Phase = corev1.PodRunning
	running := must(pods.UpdateStatus(ctx, bound, metav1.UpdateOptions{}))
	assert.True(t, running.Status.Phase == corev1.PodRunning && running.Generation == bound.Generation,
		"status: got %v at generation %d", running.Status.Phase, running.Generation)
	running.Labels = map[string]string{"app": "b"}
	running.Status.Phase = corev1.PodFailed
	updated := must(pods.Update(ctx, running, metav1.UpdateOptions{}))
	assert.True(t, updated.Labels["app"] == "b" && updated.Status.Phase == corev1.PodRunning,
		"update: got %v, %v", updated.Labels, updated.Status.Phase)
	_, err := pods.Update(ctx, running, metav1.UpdateOptions{})
	assert.Fails(t, err, apierrors.IsConflict, "update of an old version")
	patched := must(pods.Patch(ctx, pod.Name, types.StrategicMergePatchType,
		[]byte(`{"spec":{"containers":[{"name":"main","image":"example.test/main:2"}]}}`), metav1.PatchOptions{}))
	assert.True(t, len(patched.Spec.Containers) == 1 && patched.Spec.Containers[0].Image == "example.test/main:2",
		"patch: got %v", patched.Spec.Containers)
	list := must(pods.List(ctx, metav1.ListOptions{LabelSelector: "app=b", FieldSelector: "spec.nodeName=n1"}))
	assert.True(t, len(list.Items) == 1 && list.ResourceVersion != "",
		"list: got %d at %q", len(list.Items), list.ResourceVersion)

	following := must(pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))
	defer following.Stop()
	zero := int64(0)
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero,
		Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) {
		t.Errorf("delete of another uid: got %v", err)
	}
	assert.NoError(t, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}), "delete")
	for event := range following.ResultChan() {
		if event.Type == watch.Deleted {
			break
		}
	}
	_, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
	assert.Fails(t, err, apierrors.IsNotFound, "get of what is gone")

	for _, name := range []string{"x", "y"} {
		must(core.ConfigMaps("default").Create(ctx, configMap(name, "k", "v"), metav1.CreateOptions{}))
		must(core.Events("default").Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Reason: "Tested",
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "default", Name: name},
		}, metav1.CreateOptions{}))
	}
	if events := must(core.Events("default").List(ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.name=x"})); len(events.Items) != 1 {
		t.Errorf("events about x: got %d", len(events.Items))
	}
	if err := core.ConfigMaps("default").DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "metadata.name=x"}); err != nil {
		t.Errorf("delete a collection: %v", err)
	}
	left := stored(t, v)
	assert.True(t, len(left) == 1 && strings.HasPrefix(left[0], "default/y@"), "after the deletion of x: got %v", left)
	must(core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		metav1.CreateOptions{}))
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// startInformer is one make of informers: it starts one of all ConfigMaps.
type startInformer func(t *testing.T, config *rest.Config) cache.SharedIndexInformer

var makes = map[string]startInformer{
	"typed": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := informers.NewSharedInformerFactory(must(kubernetes.NewForConfig(protobuf(config))), 0)
		return started(t, factory, factory.Core().V1().ConfigMaps().Informer())
	},
	"dynamic": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := dynamicinformer.NewDynamicSharedInformerFactory(must(dynamic.NewForConfig(config)), 0)
		return started(t, factory, factory.ForResource(configMaps).Informer())
	},
	"metadata": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := metadatainformer.NewSharedInformerFactory(must(metadata.NewForConfig(config)), 0)
		return started(t, factory, factory.ForResource(configMaps).Informer())
	},
}

// started starts the informers of a factory, which end with the test.
func started(t *testing.T, factory interface {
	Start(stop <-chan struct{})
	Shutdown()
}, informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	stop := make(chan struct{}) // closed with the test
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	return informer
}

// TestEveryInformerEndsEqualToWhatIsStored watches it come to be, under churn, and lets another one come late.
func TestEveryInformerEndsEqualToWhatIsStored(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("watch-list %v", watchList), func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			for name, start := range makes {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					followChurn(t, start, watchList)
				})
			}
		})
	}
}

func followChurn(t *testing.T, start startInformer, watchList bool) {
	v := program.StartViz(t, alone...)
	churn(t, v, 1, 10)
	config, asked := configFor(v)
	early := start(t, config)
	program.Eventually(t, patience, func() (bool, string) { return early.HasSynced(), "not synced" })
	checkFirstRequests(t, asked.read(), watchList)
	churn(t, v, 2, 50)
	late := start(t, config)
	endsEqual(t, v, early.GetStore().List)
	endsEqual(t, v, late.GetStore().List)
}

// checkFirstRequests expects that the first state came as a stream, or by a list from the cache and a watch from there.
func checkFirstRequests(t *testing.T, asked []string, watchList bool) {
	t.Helper()
	first, lists := asked[0], 0
	for _, request := range asked {
		if !strings.Contains(request, "watch=true") {
			lists++
		}
	}
	assert.False(t, watchList && (lists != 0 || !strings.Contains(first, "sendInitialEvents=true")),
		"want one watch with the initial events, got %q", asked)
	assert.False(t, !watchList && (lists != 1 || !strings.Contains(first, "resourceVersion=0")),
		"want a list at 0, then a watch, got %q", asked)
}

package registry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

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
	"listwatch/internal/kube/resources"
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
		"a node, which has no namespace": {Nodes(), "", "metadata.name=n1", "/registry/minions/n1", false},
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
		assert.Equal(t, want, set.Get(field), field)
	}
	assert.False(t, set.Has("spec.priority"), "a field is known that is not listed")
}

func TestPodRowSumsUpItsContainers(t *testing.T) {
	ago := metav1.NewTime(epoch.Add(-90 * time.Second))
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, c := range map[string]struct {
		edit func(*corev1.Pod)
		want []any // ready, status, restarts
	}{
		"pending":     {func(*corev1.Pod) {}, []any{"0/1", "Pending", "0"}},
		"terminating": {func(p *corev1.Pod) { p.DeletionTimestamp = &ago }, []any{"0/1", "Terminating", "0"}},
		"running": {func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: "Running", ContainerStatuses: []corev1.ContainerStatus{{Ready: true,
				State: running}}}
		}, []any{"1/1", "Running", "0"}},
		"crashing": {func(p *corev1.Pod) {
			last := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago}}
			p.Status = corev1.PodStatus{Phase: "Running", ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 3,
				State: waiting("CrashLoopBackOff"), LastTerminationState: last}}}
		}, []any{"0/1", "CrashLoopBackOff", "3 (90s ago)"}},
		"finished, deleted": {func(p *corev1.Pod) {
			ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
			p.DeletionTimestamp = &ago
			p.Status = corev1.PodStatus{Phase: "Succeeded", ContainerStatuses: []corev1.ContainerStatus{{State: ended}}}
		}, []any{"0/1", "Completed", "0"}},
		"initializing": {func(p *corev1.Pod) {
			p.Spec.InitContainers = make([]corev1.Container, 2)
			p.Status = corev1.PodStatus{Phase: "Pending", InitContainerStatuses: []corev1.ContainerStatus{
				{State: running}, {}}}
		}, []any{"0/1", "Init:0/2", "0"}},
		"with a sidecar that runs": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "s",
				RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
			up := corev1.ContainerStatus{Name: "s", Ready: true, Started: new(true), State: running}
			p.Status = corev1.PodStatus{Phase: "Running", InitContainerStatuses: []corev1.ContainerStatus{up},
				ContainerStatuses: []corev1.ContainerStatus{{Ready: true, State: running}}}
		}, []any{"2/2", "Running", "0"}},
		"killed": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Signal: 9}}}}
		}, []any{"0/1", "Signal:9", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
			c.edit(p)
			table := require.Value(resources.Table(p, resources.PodColumns, true, epoch))(t)
			assert.NoDiff(t, c.want, table.Rows[0].Cells[1:4], "cells")
		})
	}
}

func TestATableOfAListCarriesTheListsVersion(t *testing.T) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "c"},
		Items: []corev1.Pod{*pod("a"), *pod("b")}}
	table := require.Value(resources.Table(list, resources.PodColumns, false, epoch))(t)
	if table.ResourceVersion != "7" || table.Continue != "c" || len(table.Rows) != 2 || table.ColumnDefinitions != nil {
		t.Errorf("got version %q, continue %q, %d rows, columns %v", table.ResourceVersion, table.Continue,
			len(table.Rows), table.ColumnDefinitions)
	}
}

func TestOtherKindsKeepTheirRules(t *testing.T) {
	w := newWorld(t)
	configMaps := New(w.config(ConfigMaps()))
	fixed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"},
		Immutable: new(true)}
	_, err := configMaps.Create(t.Context(), "default", fixed.DeepCopy(), &metav1.CreateOptions{})
	require.NoError(t, err)
	fixed.Data["k"] = "2"
	_, _, err = configMaps.Update(t.Context(), "default", "a", replacing(fixed), false, &metav1.UpdateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)

	namespaces := New(w.config(Namespaces()))
	out, err := namespaces.Create(t.Context(), "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		&metav1.CreateOptions{})
	require.NoError(t, err)
	got := out.(*corev1.Namespace)
	assert.True(t, got.Status.Phase == corev1.NamespaceActive && got.Labels[corev1.LabelMetadataName] == "x",
		"namespace: got %+v", got)

	nodes := New(w.config(Nodes()))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		{Key: "k", Effect: "Perhaps"}}}}
	_, err = nodes.Create(t.Context(), "", node, &metav1.CreateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)
	node.Spec = corev1.NodeSpec{PodCIDRs: []string{"nonsense"}}
	_, err = nodes.Create(t.Context(), "", node, &metav1.CreateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)

	secret := &corev1.Secret{StringData: map[string]string{"k": "text"}}
	resources.DefaultSecret(secret)
	want := &corev1.Secret{Data: map[string][]byte{"k": []byte("text")}, Type: corev1.SecretTypeOpaque}
	assert.NoDiff(t, want, secret, "secret")

	events := New(w.config(Events()))
	stray := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{
		Namespace: "other"}}
	_, err = events.Create(t.Context(), "default", stray, &metav1.CreateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)
}

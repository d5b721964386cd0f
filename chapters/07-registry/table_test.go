package registry

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/resources"
)

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
			table, err := resources.Table(p, resources.PodColumns, true, epoch)
			require.NoError(t, err)
			assert.NoDiff(t, table.Rows[0].Cells[1:4], c.want, "cells")
		})
	}
}

func TestATableOfAListCarriesTheListsVersion(t *testing.T) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "c"},
		Items: []corev1.Pod{*pod("a"), *pod("b")}}
	table, err := resources.Table(list, resources.PodColumns, false, epoch)
	require.NoError(t, err)
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
	if _, err := configMaps.Create(t.Context(), "default", fixed.DeepCopy(), &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixed.Data["k"] = "2"
	_, _, err := configMaps.Update(t.Context(), "default", "a", replacing{fixed}, &metav1.UpdateOptions{})
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

	events := New(w.config(Events()))
	stray := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{
		Namespace: "other"}}
	_, err = events.Create(t.Context(), "default", stray, &metav1.CreateOptions{})
	wantStatus(t, err, 422, metav1.StatusReasonInvalid)
}

package resources

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestPullPolicyFollowsFromTheTag(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"i": "Always", "i:latest": "Always", "i:1": "IfNotPresent", "r:5000/i": "Always", "r:5000/i:1": "IfNotPresent",
		"i@sha256:abc": "IfNotPresent",
	} {
		assert.Equal(t, want, defaultPullPolicy(image), image)
	}
}

func TestPodsAnswerForTheFieldsThatTheyList(t *testing.T) {
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	obj.Spec.NodeName, obj.Spec.HostNetwork = "n1", true
	obj.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
	_, set, err := PodAttrs(obj)
	require.NoError(t, err)
	for _, field := range PodFields {
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
			p := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
			p.Status.Phase = corev1.PodPending
			c.edit(p)
			table := require.Value(Table(p, "pods", true, epoch))(t)
			assert.NoDiff(t, c.want, table.Rows[0].Cells[1:4], "cells")
		})
	}
}

func TestATableOfAListCarriesTheListsVersion(t *testing.T) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "c"}, Items: []corev1.Pod{{}, {}}}
	table := require.Value(Table(list, "pods", false, epoch))(t)
	if table.ResourceVersion != "7" || table.Continue != "c" || len(table.Rows) != 2 || table.ColumnDefinitions != nil {
		t.Errorf("got version %q, continue %q, %d rows, columns %v", table.ResourceVersion, table.Continue,
			len(table.Rows), table.ColumnDefinitions)
	}
}

func TestASecretsTextBecomesData(t *testing.T) {
	secret := &corev1.Secret{StringData: map[string]string{"k": "text"}}
	SecretStrategy{}.Default(secret)
	want := &corev1.Secret{Data: map[string][]byte{"k": []byte("text")}, Type: corev1.SecretTypeOpaque}
	assert.NoDiff(t, want, secret, "secret")
}

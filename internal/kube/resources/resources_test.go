package resources

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

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
		"status.podIP": "10.0.0.1", "status.phase": string(obj.Status.Phase), "spec.priority": "",
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
		"killed": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Signal: 9}}}}
		}, []any{"0/1", "Signal:9", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
			p.Status.Phase = corev1.PodPending
			c.edit(p)
			assert.NoDiff(t, c.want, require.Value(Table(p, "pods", true, epoch))(t).Rows[0].Cells[1:4], "cells")
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

func deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	obj := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}
	if change != nil {
		change(obj)
	}
	WorkloadStrategy{}.Default(obj)
	return obj
}

func TestADeploymentIsRefusedAsUpstreamDoes(t *testing.T) {
	for want, change := range map[string]func(*appsv1.Deployment){
		"":                              nil,
		"spec.selector: Required value": func(d *appsv1.Deployment) { d.Spec.Selector = nil },
		"empty selector is invalid":     func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels = nil },
		"`selector` does not match template `labels`": func(d *appsv1.Deployment) { d.Spec.Template.Labels = nil },
		"spec.selector.matchLabels: Invalid value": func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchLabels["-"] = "web"
		},
		"spec.replicas: Invalid value: -1": func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(-1)) },
		"spec.template.spec.restartPolicy: Unsupported value": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		},
		"spec.template.spec.containers: Required value": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = nil
		},
		"spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds": func(
			d *appsv1.Deployment) {
			d.Spec.MinReadySeconds = 600
		},
		"may not be specified when strategy `type` is 'Recreate'": func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{
				Type: "Recreate", RollingUpdate: &appsv1.RollingUpdateDeployment{}}
		},
		"spec.strategy: Unsupported value": func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Slow" },
		"may not be 0 when `maxSurge` is 0": func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
				MaxUnavailable: new(intstr.FromString("0%")), MaxSurge: new(intstr.FromInt32(0))}
		},
		"must not be greater than 100%": func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
				MaxUnavailable: new(intstr.FromString("101%"))}
		},
		"a valid percent string must be": func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromString("many"))}
		},
	} {
		problems := WorkloadStrategy{}.Validate(deployment(change))
		got := problems.ToAggregate()
		assert.True(t, (got == nil) == (want == "") && (got == nil || strings.Contains(got.Error(), want)),
			"got %v, want %q", got, want)
	}
}

func TestTheGenerationOfAWorkloadCountsWhatItsControllerMustSee(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*appsv1.Deployment)
		want   int64
	}{
		"a label":       {func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }, 1},
		"the status":    {func(d *appsv1.Deployment) { d.Status.Replicas = 7 }, 1},
		"an annotation": {func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }, 2},
		"the spec":      {func(d *appsv1.Deployment) { d.Spec.Paused = true }, 2},
	} {
		old := deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 3 })
		WorkloadStrategy{}.PrepareForCreate(old)
		assert.True(t, old.Generation == 1 && old.Status.Replicas == 0, "%s: at first %v", name, old)
		changed := old.DeepCopy()
		c.change(changed)
		WorkloadStrategy{}.PrepareForUpdate(changed, old)
		assert.Equal(t, c.want, changed.Generation, name)
		assert.Equal(t, 0, changed.Status.Replicas, name)
	}
}

func TestWhatPodsAreFoundByCannotBeChanged(t *testing.T) {
	set := func(name, label string) *appsv1.StatefulSet {
		d := deployment(func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"] = label, label
		})
		obj := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{ServiceName: name, Selector: d.Spec.Selector,
			Template: d.Spec.Template}}
		WorkloadStrategy{}.Default(obj)
		return obj
	}
	for name, c := range map[string]struct {
		obj  runtime.Object
		want string
	}{
		"nothing":      {set("a", "web"), ""},
		"the selector": {set("a", "db"), "spec.selector: Invalid value"},
		"the service":  {set("b", "web"), "spec.serviceName: Invalid value"},
	} {
		got := WorkloadStrategy{}.ValidateUpdate(c.obj, set("a", "web")).ToAggregate()
		assert.True(t, (got == nil) == (c.want == "") && (got == nil || strings.Contains(got.Error(), c.want)),
			"%s: got %v, want %q", name, got, c.want)
	}
}

func TestAnImmutableSecretKeepsItsData(t *testing.T) {
	secret := func(immutable bool, kind corev1.SecretType, data string) *corev1.Secret {
		return &corev1.Secret{Type: kind, Immutable: &immutable, Data: map[string][]byte{"a": []byte(data)}}
	}
	for want, objects := range map[string][2]*corev1.Secret{
		"":                                {secret(false, "t", "1"), secret(true, "t", strings.Repeat("2", 1<<20))},
		"data: Too long: may not be more": {secret(false, "t", "1"), secret(true, "t", strings.Repeat("2", 1+1<<20))},
		"data: Forbidden: field is immu":  {secret(true, "t", "1"), secret(true, "t", "2")},
		"immutable: Forbidden: field is":  {secret(true, "t", "1"), secret(false, "t", "1")},
		`type: Invalid value: "u": field`: {secret(false, "t", "1"), secret(false, "u", "1")},
	} {
		got := SecretStrategy{}.ValidateUpdate(objects[1], objects[0]).ToAggregate()
		assert.True(t, (got == nil) == (want == "") && (got == nil || strings.Contains(got.Error(), want)),
			"got %v, want %q", got, want)
	}
}

package controllers

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	indexer "listwatch/chapters/11-indexer"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

func testPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-1", ResourceVersion: "1"},
		Spec: corev1.PodSpec{NodeName: "node1", Containers: []corev1.Container{{Name: "main",
			Image: "example.test/main:1"}}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func TestTheNextStepFollowsFromWhatThePodSays(t *testing.T) {
	started := metav1.NewTime(time.Unix(1, 0))
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   podStep
	}{
		"just bound": {func(*corev1.Pod) {}, admit},
		"arrived": {func(p *corev1.Pod) { p.Status.StartTime, p.Status.Phase = &started, corev1.PodPending },
			launch},
		"runs for ever": {func(p *corev1.Pod) { p.Status.StartTime, p.Status.Phase = &started, corev1.PodRunning },
			nothing},
		"runs to its end": {func(p *corev1.Pod) {
			p.Status.StartTime, p.Status.Phase, p.Spec.RestartPolicy = &started, corev1.PodRunning,
				corev1.RestartPolicyNever
		}, finish},
		"runs until it succeeds": {func(p *corev1.Pod) {
			p.Status.StartTime, p.Status.Phase, p.Spec.RestartPolicy = &started, corev1.PodRunning,
				corev1.RestartPolicyOnFailure
		}, finish},
		"has ended":  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, nothing},
		"has failed": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, nothing},
		"is to go":   {func(p *corev1.Pod) { p.DeletionTimestamp = &started }, stop},
		"is to go, and has ended too": {func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Status.Phase = &started, corev1.PodSucceeded
		}, stop},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, nextStep(testPod("a", c.change)), "next step")
		})
	}
}

func TestAPodStopsWithinItsGracePeriod(t *testing.T) {
	for grace, want := range map[int64]time.Duration{30: stopAfter, 1: stopAfter, 0: 0} {
		pod := testPod("a", func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = &grace })
		assert.Equal(t, want, stop.takes(pod), "with %d s of grace stopping takes", grace)
	}
}

func TestAPodOfTheSameNameWaitsForItselfAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := &Kubelet{config: KubeletConfig{Clock: clock.RealClock{}}, seen: map[string]seenStep{}}
		first, second := testPod("a", nil), testPod("a", func(p *corev1.Pod) { p.UID = "uid-2" })
		rests := func(pod *corev1.Pod, want time.Duration) {
			t.Helper()
			assert.Equal(t, want, k.rest("default/a", pod, launch), "%s rests for", pod.UID)
		}
		rests(first, time.Second)
		time.Sleep(900 * time.Millisecond)
		rests(first, 100*time.Millisecond)
		rests(second, time.Second) // deleted and created again, and the kubelet did not look in between
	})
}

func TestStatusTellsTheLifeOfAPod(t *testing.T) {
	pod := testPod("a", func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	})
	second := func(n int64) time.Time { return time.Unix(n, 0) }
	status := &pod.Status

	setPending(status, pod, "192.168.0.1", second(1))
	assert.True(t, status.Phase == corev1.PodPending && status.HostIP == "192.168.0.1" &&
		status.ContainerStatuses[0].State.Waiting != nil && status.ContainerStatuses[0].ContainerID == "",
		"after arrival: %+v", status)
	setRunning(status, pod, "10.244.0.1", second(2))
	container := status.ContainerStatuses[0]
	assert.True(t, status.Phase == corev1.PodRunning && status.PodIP == "10.244.0.1" && container.Ready &&
		container.State.Running != nil && strings.HasPrefix(container.ContainerID, "none://") &&
		strings.HasPrefix(container.ImageID, "example.test/main:1@sha256:"), "while running: %+v", status)
	if got := condition(status, corev1.PodReady); got.Status != corev1.ConditionTrue || !got.LastTransitionTime.Equal(
		&metav1.Time{Time: second(2)}) {
		t.Errorf("Ready is %+v, want True since 2 s", got)
	}
	setSucceeded(status, pod, second(3))
	ended := status.ContainerStatuses[0].State.Terminated
	assert.True(t, status.Phase == corev1.PodSucceeded && ended != nil && ended.ExitCode == 0 &&
		ended.StartedAt.Time.Equal(second(2)) && ended.ContainerID == container.ContainerID, "after the end: %+v",
		status)
	got := condition(status, corev1.PodReady)
	assert.True(t, got.Status == corev1.ConditionFalse && got.Reason == "PodCompleted", "Ready is %+v, want False", got)
	if got := condition(status, corev1.PodInitialized); !got.LastTransitionTime.Equal(&metav1.Time{Time: second(1)}) {
		t.Errorf("Initialized changed at %v, want 1 s: it did not change since", got.LastTransitionTime)
	}
	got = condition(status, corev1.PodScheduled)
	assert.Equal(t, corev1.ConditionTrue, got.Status, "the scheduler's condition is gone")
}

func condition(status *corev1.PodStatus, typ corev1.PodConditionType) corev1.PodCondition {
	for _, condition := range status.Conditions {
		if condition.Type == typ {
			return condition
		}
	}
	return corev1.PodCondition{}
}

func TestNodesGiveOutDifferentAddresses(t *testing.T) {
	for _, c := range []struct{ node, hostIP, podCIDR string }{
		{"node-1", "192.168.0.1", "10.1.0.0/16"},
		{"node12", "192.168.0.12", "10.12.0.0/16"},
		{"alone", "192.168.0.0", "10.0.0.0/16"},
		{"node-999", "192.168.0.0", "10.0.0.0/16"},
	} {
		k := NewKubelet(KubeletConfig{NodeName: c.node, Client: &listwatch.RESTClient{}, Clock: clock.RealClock{}})
		assert.True(t, k.hostIP == c.hostIP && k.podCIDR.String() == c.podCIDR,
			"%s is %s with pods in %s, want %s and %s", c.node, k.hostIP, k.podCIDR, c.hostIP, c.podCIDR)
	}
}

func TestAnAddressIsNotGivenOutTwice(t *testing.T) {
	cidr := netip.MustParsePrefix("10.1.0.0/29") // .1 to .7
	k := &Kubelet{
		podCIDR: cidr, nextIP: cidr.Addr(),
		store: &undeltaStore{Indexer: indexer.NewIndexer(indexer.Config{})},
	}
	taken := map[string]bool{"10.1.0.2": true, "10.1.0.4": true}
	for ip := range taken {
		require.NoError(t, k.store.Indexer.Add(testPod("on-"+ip, func(p *corev1.Pod) { p.Status.PodIP = ip })))
	}
	for range 5 {
		ip := k.allocateIP()
		assert.False(t, taken[ip] || ip == "10.1.0.0", "%s was given out although it is taken", ip)
		taken[ip] = true
	}
	assert.Equal(t, "10.1.0.1", k.allocateIP(), "after the range went around")
}

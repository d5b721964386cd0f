package controllers

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// podStep is one thing a kubelet does about a pod.
type podStep string

const (
	nothing podStep = ""
	admit   podStep = "admit"  // say that the pod has arrived
	launch  podStep = "start"  // say that its containers run
	finish  podStep = "finish" // say that they have ended well
	stop    podStep = "stop"   // say that they have stopped: the final delete
)

// seenStep is the step a pod needs, and since when the kubelet knows.
type seenStep struct {
	uid   string
	step  podStep
	since time.Time
}

// nextStep compares what is with what should be.
func nextStep(pod *corev1.Pod) podStep {
	policy := pod.Spec.RestartPolicy
	switch {
	case pod.DeletionTimestamp != nil:
		return stop
	case podIsTerminal(pod):
		return nothing
	case pod.Status.StartTime == nil:
		return admit
	case pod.Status.Phase != corev1.PodRunning:
		return launch
	case policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure:
		return finish
	}
	return nothing
}

// rest returns how long the step must still wait. The time counts from when this kubelet first saw that the step was
// needed, so a kubelet that restarts begins the wait again.
func (k *Kubelet) rest(key string, pod *corev1.Pod, step podStep) time.Duration {
	now := k.config.Clock.Now()
	seen := k.seen[key]
	// A pod that was deleted and created again under the same name is another pod.
	if seen.uid != string(pod.UID) || seen.step != step {
		seen = seenStep{uid: string(pod.UID), step: step, since: now}
		k.seen[key] = seen
	}
	return step.takes(pod) - now.Sub(seen.since)
}

// takes returns how long a step takes.
func (step podStep) takes(pod *corev1.Pod) time.Duration {
	switch step {
	case launch:
		return startAfter
	case finish:
		return finishAfter
	case stop:
		return min(stopAfter, time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0))*time.Second)
	}
	return 0
}

// do writes down that a step was done. A pod that is gone by then needs no step.
func (k *Kubelet) do(ctx context.Context, step podStep, pod *corev1.Pod) error {
	now := k.config.Clock.Now()
	updated := pod.DeepCopy() // the original came out of a cache: others look at it
	switch step {
	case admit:
		setPending(&updated.Status, pod, k.hostIP, now)
	case launch:
		setRunning(&updated.Status, pod, k.allocateIP(), now)
	case finish:
		setSucceeded(&updated.Status, pod, now)
	case stop:
		return ignoreGone(k.delete(ctx, pod))
	}
	return ignoreGone(k.updateStatus(ctx, updated))
}

// recordLaunch tells people that the pod's containers run.
func (k *Kubelet) recordLaunch(pod *corev1.Pod) {
	source := corev1.EventSource{Component: "kubelet", Host: k.config.NodeName}
	for i := range pod.Spec.Containers {
		k.config.Recorder.Event(source, pod, corev1.EventTypeNormal, "Pulled",
			"Container image %q already present on machine", pod.Spec.Containers[i].Image)
		k.config.Recorder.Event(source, pod, corev1.EventTypeNormal, "Started", "Container started")
	}
}

// updateStatus replaces the status of a pod. It carries the resourceVersion that was looked at,
// so if another client has changed the pod since, the server answers 409 Conflict: the decision
// was about an older state. The key comes back, and by then the cache has it.
func (k *Kubelet) updateStatus(ctx context.Context, pod *corev1.Pod) error {
	return resourceClient{k.config.Client, "pods"}.write(ctx, pod, "status")
}

// delete is the second half of a graceful deletion. The first only set deletionTimestamp; this one, with no grace left,
// removes the object. The UID makes sure that it is still the pod we stopped.
func (k *Kubelet) delete(ctx context.Context, pod *corev1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return k.config.Client.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		Body(options).Do(ctx).Error()
}

// allocateIP returns the next address of the node's range that no pod in the store has. There are more addresses than a
// node has room for pods.
func (k *Kubelet) allocateIP() string {
	taken := func(obj any) bool { return obj.(*corev1.Pod).Status.PodIP == k.nextIP.String() }
	for {
		// The range begins with the network's own address.
		if k.nextIP = k.nextIP.Next(); !k.podCIDR.Contains(k.nextIP) {
			k.nextIP = k.podCIDR.Addr().Next()
		}
		if !slices.ContainsFunc(k.store.List(), taken) {
			return k.nextIP.String()
		}
	}
}

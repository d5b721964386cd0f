package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/observe/routine"
)

// registerRetry is the time between two attempts of a kubelet to make its node known.
const registerRetry = time.Second

// register makes the node known, and is done. It tries until it succeeds or ctx is done.
//
// Differs: a real kubelet also renews a lease every ten seconds and its node's status every five minutes, by which
// others know that it lives. No controller here would look.
func (k *Kubelet) register(ctx context.Context) {
	for k.tryRegister(ctx) != nil {
		if routine.Sleep(ctx, k.config.Clock, registerRetry) != nil {
			return
		}
	}
}

// tryRegister creates the node. One that is there already, from an earlier run, gets the status of this one.
func (k *Kubelet) tryRegister(ctx context.Context) error {
	node := k.node(k.config.Clock.Now())
	err := k.config.Client.Post().Resource("nodes").Body(node).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		err = k.config.Client.Put().Resource("nodes").Name(node.Name).SubResource("status").Body(node).Do(ctx).Error()
	}
	return err
}

// node returns the node as its kubelet sees it: healthy.
func (k *Kubelet) node(now time.Time) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	healthy := func(typ corev1.NodeConditionType, value corev1.ConditionStatus, reason,
		message string) corev1.NodeCondition {
		at := metav1.NewTime(now)
		return corev1.NodeCondition{Type: typ, Status: value, Reason: reason, Message: message, LastHeartbeatTime: at,
			LastTransitionTime: at}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: k.config.NodeName, Labels: map[string]string{
			corev1.LabelHostname: k.config.NodeName}},
		Spec: corev1.NodeSpec{PodCIDR: k.podCIDR.String(), PodCIDRs: []string{k.podCIDR.String()}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: k.hostIP},
				{Type: corev1.NodeHostName, Address: k.config.NodeName}},
			Conditions: []corev1.NodeCondition{
				healthy(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory",
					"kubelet has sufficient memory available"),
				healthy(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: "v1.37.2-listwatch", ContainerRuntimeVersion: "none://1", OSImage: "toy",
				KernelVersion: "none", OperatingSystem: "none", Architecture: "none",
			},
		},
	}
}

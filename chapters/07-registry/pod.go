package registry

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Pods describes pods.
func Pods() *Resource {
	return &Resource{
		Name: "pods", Singular: "pod", Kind: "Pod", ShortNames: []string{"po"}, Categories: []string{"all"}, Namespaced: true,
		Prefix:      "/registry/pods",
		NewFunc:     func() runtime.Object { return &corev1.Pod{} },
		NewListFunc: func() runtime.Object { return &corev1.PodList{} },
		GetAttrs:    podAttrs,
		Fields: []string{
			"metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
			"spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
		},
		IndexFields:         []string{"spec.nodeName"},
		Indexers:            map[string]func(runtime.Object) string{"spec.nodeName": NodeNameTriggerFunc},
		Default:             func(obj runtime.Object) { defaultPod(obj.(*corev1.Pod)) },
		ValidateName:        validation.NameIsDNSSubdomain,
		Columns:             podColumns(),
		Cells:               podCells,
		Strategy:            podStrategy{},
		StatusStrategy:      podStatusStrategy{},
		ReturnDeletedObject: true,
	}
}

// NodeNameTriggerFunc returns the node a pod is bound to. A watcher that selects one node hears of no other's pods:
// that is what lets thousands of kubelets watch the same resource.
//
// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: IndexerFunc
func NodeNameTriggerFunc(obj runtime.Object) string { return obj.(*corev1.Pod).Spec.NodeName }

// podAttrs is the AttrFunc of pods.
func podAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("not a pod: %T", obj)
	}
	podIP := pod.Status.PodIP
	if podIP == "" && len(pod.Status.PodIPs) > 0 {
		podIP = pod.Status.PodIPs[0].IP
	}
	return pod.Labels, fields.Set{
		"metadata.name":            pod.Name,
		"metadata.namespace":       pod.Namespace,
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         fmt.Sprint(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             podIP,
		"status.podIPs":            podIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}, nil
}

// podStrategy is for what users write: the spec, and never the status.
type podStrategy struct{}

var (
	_ Strategy               = podStrategy{}
	_ GracefulDeleteStrategy = podStrategy{}
)

// PrepareForCreate gives a new pod its first status.
func (podStrategy) PrepareForCreate(obj runtime.Object) {
	pod := obj.(*corev1.Pod)
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podQOS(pod)}
}

// Validate checks a new pod.
func (podStrategy) Validate(obj runtime.Object) field.ErrorList {
	return validatePodSpec(&obj.(*corev1.Pod).Spec, field.NewPath("spec"))
}

// PrepareForUpdate keeps the status, which belongs to the kubelet.
func (podStrategy) PrepareForUpdate(obj, old runtime.Object) {
	pod, oldPod := obj.(*corev1.Pod), old.(*corev1.Pod)
	pod.Status = oldPod.Status
	if !equality.Semantic.DeepEqual(pod.Spec, oldPod.Spec) {
		pod.Generation++
	}
}

// ValidateUpdate checks a changed pod.
func (podStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	pod, oldPod := obj.(*corev1.Pod), old.(*corev1.Pod)
	path := field.NewPath("spec")
	problems := validatePodSpec(&pod.Spec, path)
	return append(problems, validatePodSpecUpdate(&pod.Spec, &oldPod.Spec, path)...)
}

// CheckGracefulDelete gives a running pod time to stop. A pod that never reached a node, or has finished, needs none:
// there is no kubelet that would come and say that it is over.
func (podStrategy) CheckGracefulDelete(obj runtime.Object, options *metav1.DeleteOptions) bool {
	pod := obj.(*corev1.Pod)
	period := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	if options.GracePeriodSeconds != nil {
		period = *options.GracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		period = 0
	}
	if period < 0 {
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}

// podStatusStrategy is for what the kubelet writes: the status, and never the spec.
type podStatusStrategy struct{ podStrategy }

// PrepareForUpdate keeps everything but the status and the metadata.
func (podStatusStrategy) PrepareForUpdate(obj, old runtime.Object) {
	pod, oldPod := obj.(*corev1.Pod), old.(*corev1.Pod)
	pod.Spec = *oldPod.Spec.DeepCopy()
	pod.OwnerReferences = oldPod.OwnerReferences
	if pod.Status.QOSClass == "" {
		pod.Status.QOSClass = oldPod.Status.QOSClass
	}
}

// ValidateUpdate checks a changed status.
func (podStatusStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList {
	return validatePodStatus(&obj.(*corev1.Pod).Status, field.NewPath("status"))
}

// PodStorage is the storage of pods and of their subresources.
type PodStorage struct {
	Pod     *Store
	Status  *StatusREST
	Binding *BindingREST
}

// NewPodStorage returns the storages of pods. cfg.Resource may be left out.
func NewPodStorage(cfg Config) PodStorage {
	if cfg.Resource == nil {
		cfg.Resource = Pods()
	}
	store := New(cfg)
	return PodStorage{Pod: store, Status: NewStatusREST(store), Binding: &BindingREST{store: store}}
}

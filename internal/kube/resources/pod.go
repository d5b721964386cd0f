package resources

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// NodeNameTriggerFunc returns the node a pod is bound to. The cache finds by it the watchers that select this node, so
// that thousands of kubelets can watch pods.
//
// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: IndexerFunc
func NodeNameTriggerFunc(obj runtime.Object) string { return obj.(*corev1.Pod).Spec.NodeName }

// PodAttrs returns a pod's labels and selectable fields.
func PodAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("not a pod: %T", obj)
	}
	return pod.Labels, (*podFields)(pod), nil
}

// podFields reads the fields of a pod for field selectors. It copies nothing: few selectors name a field.
type podFields corev1.Pod

var _ fields.Fields = (*podFields)(nil)

// podField has a function for each field that selectors may name.
//
// Differs: k8s.io/kubernetes/pkg/registry/core/pod fills a map with all of them for every pod that is cached.
var podField = map[string]func(*podFields) string{
	"metadata.name":            func(p *podFields) string { return p.Name },
	"metadata.namespace":       func(p *podFields) string { return p.Namespace },
	"spec.nodeName":            func(p *podFields) string { return p.Spec.NodeName },
	"spec.restartPolicy":       func(p *podFields) string { return string(p.Spec.RestartPolicy) },
	"spec.schedulerName":       func(p *podFields) string { return p.Spec.SchedulerName },
	"spec.serviceAccountName":  func(p *podFields) string { return p.Spec.ServiceAccountName },
	"spec.hostNetwork":         func(p *podFields) string { return strconv.FormatBool(p.Spec.HostNetwork) },
	"status.phase":             func(p *podFields) string { return string(p.Status.Phase) },
	"status.podIP":             (*podFields).podIP,
	"status.podIPs":            (*podFields).podIP,
	"status.nominatedNodeName": func(p *podFields) string { return p.Status.NominatedNodeName },
}

// PodFields are the fields that pods can be selected by.
var PodFields = slices.Collect(maps.Keys(podField))

// Has implements [fields.Fields].
func (p *podFields) Has(field string) bool { return podField[field] != nil }

// Get implements [fields.Fields].
func (p *podFields) Get(field string) string {
	if read := podField[field]; read != nil {
		return read(p)
	}
	return ""
}

func (p *podFields) podIP() string {
	if p.Status.PodIP == "" && len(p.Status.PodIPs) > 0 {
		return p.Status.PodIPs[0].IP
	}
	return p.Status.PodIP
}

// PodStrategy is for what users write: the spec, and never the status, which belongs to the kubelet.
type PodStrategy struct{ SpecStrategy }

// Default fills in what the client left out.
func (PodStrategy) Default(obj runtime.Object) { defaultPod(obj.(*corev1.Pod)) }

// PrepareForCreate gives a new pod its first status.
func (PodStrategy) PrepareForCreate(obj runtime.Object) {
	pod := obj.(*corev1.Pod)
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podQOS(pod)}
	noteSchedulingGates(pod)
}

// Validate checks a new pod.
func (PodStrategy) Validate(obj runtime.Object) field.ErrorList {
	return validatePodSpec(&obj.(*corev1.Pod).Spec, field.NewPath("spec"))
}

// ValidateUpdate checks a changed pod.
func (PodStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	pod, oldPod := obj.(*corev1.Pod), old.(*corev1.Pod)
	path := field.NewPath("spec")
	problems := validatePodSpec(&pod.Spec, path)
	return append(problems, validatePodSpecUpdate(&pod.Spec, &oldPod.Spec, path)...)
}

// CheckGracefulDelete gives a running pod time to stop. A pod that never reached a node, or has finished, gets none: no
// kubelet will report that its containers have ended.
func (PodStrategy) CheckGracefulDelete(obj runtime.Object, options *metav1.DeleteOptions) bool {
	pod := obj.(*corev1.Pod)
	period := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds,
		corev1.DefaultTerminationGracePeriodSeconds)
	period = ptr.Deref(options.GracePeriodSeconds, period)
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed ||
		pod.Status.Phase == corev1.PodSucceeded {
		period = 0
	}
	if period < 0 {
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}

// PodStatusStrategy is for what the kubelet writes: the status, and never the spec.
type PodStatusStrategy struct{ PodStrategy }

// PrepareForUpdate keeps everything but the status and the metadata.
func (PodStatusStrategy) PrepareForUpdate(obj, old runtime.Object) {
	pod, oldPod := obj.(*corev1.Pod), old.(*corev1.Pod)
	pod.Spec = *oldPod.Spec.DeepCopy()
	pod.OwnerReferences = oldPod.OwnerReferences
	if pod.Status.QOSClass == "" {
		pod.Status.QOSClass = oldPod.Status.QOSClass
	}
}

// ValidateUpdate accepts any status.
func (PodStatusStrategy) ValidateUpdate(_, _ runtime.Object) field.ErrorList { return nil }

package resources

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// NodeNameTriggerFunc returns the node of a pod. The cache uses it to look up the watchers of that node's pods
// directly, so that thousands of kubelets can watch pods.
//
// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: IndexerFunc
func NodeNameTriggerFunc(obj runtime.Object) string { return obj.(*corev1.Pod).Spec.NodeName }

// PodAttrs returns a pod's labels and selectable fields. The cache calls it for each event.
var PodAttrs = attrs(func(pod *corev1.Pod) fields.Fields { return (*podFields)(pod) })

// podFields is a pod as [fields.Fields]. It reads a field only when a selector names it.
type podFields corev1.Pod

// podField has a function for each selectable field.
//
// Differs: k8s.io/kubernetes/pkg/registry/core/pod makes a map with all of them for every cached pod.
var podField = map[string]func(*podFields) string{
	"metadata.name":            func(p *podFields) string { return p.Name },
	"metadata.namespace":       func(p *podFields) string { return p.Namespace },
	"spec.nodeName":            func(p *podFields) string { return p.Spec.NodeName },
	"spec.restartPolicy":       func(p *podFields) string { return string(p.Spec.RestartPolicy) },
	"spec.schedulerName":       func(p *podFields) string { return p.Spec.SchedulerName },
	"spec.serviceAccountName":  func(p *podFields) string { return p.Spec.ServiceAccountName },
	"spec.hostNetwork":         func(p *podFields) string { return strconv.FormatBool(p.Spec.HostNetwork) },
	"status.phase":             func(p *podFields) string { return string(p.Status.Phase) },
	"status.podIP":             func(p *podFields) string { return podAddress(&p.Status) },
	"status.podIPs":            func(p *podFields) string { return podAddress(&p.Status) },
	"status.nominatedNodeName": func(p *podFields) string { return p.Status.NominatedNodeName },
}

// PodFields are the names of pods' selectable fields, in any order.
var PodFields = slices.Collect(maps.Keys(podField))

func (p *podFields) Has(field string) bool { return podField[field] != nil }

func (p *podFields) Get(field string) string {
	if read := podField[field]; read != nil {
		return read(p)
	}
	return ""
}

// PodStrategy is for writes by users, which change the spec but not the status. The status belongs to the kubelet.
type PodStrategy struct{ SpecStrategy }

// Default sets missing fields of the pod, its containers and its volumes.
func (PodStrategy) Default(obj runtime.Object) { defaultPod(obj.(*corev1.Pod)) }

// PrepareForCreate sets a new pod's generation and its first status.
func (PodStrategy) PrepareForCreate(obj runtime.Object) {
	pod := obj.(*corev1.Pod)
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podQOS(pod)}
	if len(pod.Spec.SchedulingGates) > 0 { // for readers such as kubectl: the scheduler checks the gates themselves
		SetPodCondition(&pod.Status, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		})
	}
}

// Validate checks a new pod's spec.
func (PodStrategy) Validate(obj runtime.Object) field.ErrorList {
	return validatePodSpec(&obj.(*corev1.Pod).Spec, field.NewPath("spec"))
}

// ValidateUpdate checks a changed spec, and refuses changes of fields that must stay.
func (PodStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	pod, oldPod := obj.(*corev1.Pod), old.(*corev1.Pod)
	path := field.NewPath("spec")
	problems := validatePodSpec(&pod.Spec, path)
	return append(problems, validatePodSpecUpdate(&pod.Spec, &oldPod.Spec, path)...)
}

// CheckGracefulDelete sets options' grace period, by default the pod's, and returns true. A pod that has finished or
// was never bound gets 0, because no kubelet will report the end of its containers. A negative period becomes 1 second.
func (PodStrategy) CheckGracefulDelete(obj runtime.Object, options *metav1.DeleteOptions) bool {
	pod := obj.(*corev1.Pod)
	period := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	period = ptr.Deref(options.GracePeriodSeconds, period)
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		period = 0
	}
	if period < 0 {
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}

// PodStatusStrategy is for writes by the kubelet, which change the status but not the spec.
type PodStatusStrategy struct{ PodStrategy }

// PrepareForUpdate keeps the spec, the owner references and, if the new status has none, the QoS class.
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

// ValidateBinding requires that the target of a binding has a name, and the kind Node or none.
func ValidateBinding(binding *corev1.Binding) field.ErrorList {
	var problems field.ErrorList
	path := field.NewPath("target")
	if kind := binding.Target.Kind; kind != "" && kind != "Node" {
		problems = append(problems, field.NotSupported(path.Child("kind"), kind, []string{"Node", "<empty>"}))
	}
	if binding.Target.Name == "" {
		problems = append(problems, field.Required(path.Child("name"), ""))
	}
	return problems
}

// SetPodCondition adds a condition, or replaces the one of the same type. It keeps the time of the last transition if
// the status is the same.
func SetPodCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	for i, old := range status.Conditions {
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions[i] = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}

// defaultPod sets missing fields, so that readers of a pod need not supply them.
func defaultPod(pod *corev1.Pod) {
	defaultPodSpec(&pod.Spec)
	setDefault(&pod.Spec.EnableServiceLinks, new(corev1.DefaultEnableServiceLinks))
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources)
		}
	}
}

// defaultPodSpec sets the defaults that pods and pod templates share.
func defaultPodSpec(spec *corev1.PodSpec) {
	setDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setDefault(&spec.TerminationGracePeriodSeconds, new(int64(corev1.DefaultTerminationGracePeriodSeconds)))
	setDefault(&spec.SecurityContext, new(corev1.PodSecurityContext))
	setDefault(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			defaultContainer(&containers[i])
		}
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func defaultContainer(c *corev1.Container) {
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	setDefault(&c.ImagePullPolicy, defaultPullPolicy(c.Image))
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if source := c.Env[i].ValueFrom; source != nil && source.FieldRef != nil {
			setDefault(&source.FieldRef.APIVersion, "v1")
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultContainerProbe(probe)
	}
}

// defaultRequests sets each missing request to the limit.
func defaultRequests(resources *corev1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		if _, ok := resources.Requests[name]; ok {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[name] = limit.DeepCopy()
	}
}

// defaultPullPolicy returns Always for an image without a digest whose tag is latest or missing, else IfNotPresent.
func defaultPullPolicy(image string) corev1.PullPolicy {
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !strings.Contains(image, "@") && (!tagged || tag == "latest") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultContainerProbe(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	setDefault(&probe.TimeoutSeconds, 1)
	setDefault(&probe.PeriodSeconds, 10)
	setDefault(&probe.SuccessThreshold, 1)
	setDefault(&probe.FailureThreshold, 3)
	if get := probe.HTTPGet; get != nil {
		setDefault(&get.Path, "/")
		setDefault(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Secret != nil {
		setDefault(&v.Secret.DefaultMode, new(corev1.SecretVolumeSourceDefaultMode))
	}
	if v.ConfigMap != nil {
		setDefault(&v.ConfigMap.DefaultMode, new(corev1.ConfigMapVolumeSourceDefaultMode))
	}
	if v.Projected != nil {
		setDefault(&v.Projected.DefaultMode, new(corev1.ProjectedVolumeSourceDefaultMode))
	}
}

// podQOS returns Guaranteed if all containers have equal requests and limits for CPU and memory, BestEffort if none has
// any, and otherwise Burstable. A node that runs out of memory evicts BestEffort pods first.
func podQOS(pod *corev1.Pod) corev1.PodQOSClass {
	guaranteed, asks := true, false
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			asks = asks || !request.IsZero() || !limit.IsZero()
			if limit.IsZero() || request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case !asks:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

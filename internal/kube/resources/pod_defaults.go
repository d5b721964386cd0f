package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaultPod fills in what the client left out, so that no reader of a pod has to know the defaults.
func defaultPod(pod *corev1.Pod) {
	defaultPodSpec(&pod.Spec)
	setDefault(&pod.Spec.EnableServiceLinks, new(corev1.DefaultEnableServiceLinks))
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources)
		}
	}
}

// defaultPodSpec fills in the defaults that pods and templates of pods share.
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

// defaultPullPolicy returns Always for an image whose tag may move.
func defaultPullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !tagged || tag == "latest" {
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

// podQOS returns guaranteed if every container has equal requests and limits for CPU and memory, best effort if none
// has any, and burstable otherwise. A node that runs short evicts best effort first.
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

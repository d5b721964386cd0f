package resources

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	restartPolicies = []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure,
		corev1.RestartPolicyNever}
	dnsPolicies = []corev1.DNSPolicy{corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault,
		corev1.DNSNone}
	pullPolicies = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
)

// validatePodSpec checks the fields of a pod that this program uses.
// Differs: it makes few of the checks in kubernetes/pkg/apis/core/validation, with the same messages. It does not check
// tolerations, or the probes, ports, environment, volumes and mounts, which nothing here uses.
func validatePodSpec(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	names := sets.New[string]()
	if len(spec.Containers) == 0 {
		problems = append(problems, field.Required(path.Child("containers"), ""))
	}
	for i := range spec.InitContainers {
		problems = append(problems, validateContainer(&spec.InitContainers[i], names, path.Child("initContainers").
			Index(i))...)
	}
	for i := range spec.Containers {
		problems = append(problems, validateContainer(&spec.Containers[i], names, path.Child("containers").Index(i))...)
	}
	problems = slices.Concat(problems, oneOf(spec.RestartPolicy, restartPolicies, path.Child("restartPolicy")),
		oneOf(spec.DNSPolicy, dnsPolicies, path.Child("dnsPolicy")),
		atLeast(0, spec.TerminationGracePeriodSeconds, notNegative, path.Child("terminationGracePeriodSeconds")),
		atLeast(1, spec.ActiveDeadlineSeconds, "must be between 1 and 2147483647, inclusive",
			path.Child("activeDeadlineSeconds")),
		valid(spec.NodeName, validation.IsDNS1123Subdomain, path.Child("nodeName")),
		valid(spec.ServiceAccountName, validation.IsDNS1123Subdomain, path.Child("serviceAccountName")),
		valid(spec.Hostname, validation.IsDNS1123Label, path.Child("hostname")))
	for key, value := range spec.NodeSelector {
		problems = append(problems, valid(key, validation.IsQualifiedName, path.Child("nodeSelector"))...)
		problems = append(problems, valid(value, validation.IsValidLabelValue, path.Child("nodeSelector").Key(key))...)
	}
	return problems
}

func validateContainer(c *corev1.Container, names sets.Set[string], path *field.Path) field.ErrorList {
	problems := validateUniqueLabel(c.Name, names, path.Child("name"))
	switch {
	case c.Image == "":
		problems = append(problems, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		problems = append(problems, field.Invalid(path.Child("image"), c.Image,
			"must not have leading or trailing whitespace"))
	}
	problems = append(problems, oneOf(c.ImagePullPolicy, pullPolicies, path.Child("imagePullPolicy"))...)
	return append(problems, validateResources(&c.Resources, path.Child("resources"))...)
}

func validateResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for name, limit := range resources.Limits {
		if limit.Sign() < 0 {
			at := path.Child("limits").Key(string(name))
			problems = append(problems, field.Invalid(at, limit.String(), notNegative))
		}
	}
	for name, request := range resources.Requests {
		at := path.Child("requests")
		if request.Sign() < 0 {
			problems = append(problems, field.Invalid(at, request.String(), notNegative))
		}
		if limit, ok := resources.Limits[name]; ok && request.Cmp(limit) > 0 {
			problems = append(problems, field.Invalid(at, request.String(), "must be less than or equal to "+
				string(name)+" limit of "+limit.String()))
		}
	}
	return problems
}

// updatablePodSpec is the error for a change of a field that it does not list.
const updatablePodSpec = "pod updates may not change fields other than " +
	"`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only " +
	"additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was " +
	"previously negative)"

// validatePodSpecUpdate accepts new images, more tolerations, fewer scheduling gates, and a first or shorter deadline.
// It refuses every other change, such as another node or more containers.
//
// Differs: upstream also shows the fields that differ.
func validatePodSpecUpdate(spec, old *corev1.PodSpec, path *field.Path) field.ErrorList {
	if len(spec.Containers) != len(old.Containers) || len(spec.InitContainers) != len(old.InitContainers) {
		return field.ErrorList{field.Forbidden(path.Child("containers"),
			"pod updates may not add or remove containers")}
	}
	munged := spec.DeepCopy()
	for i := range munged.Containers {
		munged.Containers[i].Image = old.Containers[i].Image
	}
	for i := range munged.InitContainers {
		munged.InitContainers[i].Image = old.InitContainers[i].Image
	}
	if seconds, before := munged.ActiveDeadlineSeconds, old.ActiveDeadlineSeconds; before != nil {
		path := path.Child("activeDeadlineSeconds")
		if seconds == nil {
			return field.ErrorList{field.Invalid(path, seconds, "must not update from a positive integer to nil value")}
		}
		if *seconds > *before {
			return field.ErrorList{field.Invalid(path, *seconds, "must be less than or equal to previous value")}
		}
	}
	munged.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	for i, gate := range munged.SchedulingGates {
		if !slices.Contains(old.SchedulingGates, gate) {
			return field.ErrorList{field.Forbidden(path.Child("schedulingGates").Index(i).Child("name"),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name))}
		}
	}
	munged.SchedulingGates = old.SchedulingGates
	if isAddition(munged.Tolerations, old.Tolerations) {
		munged.Tolerations = old.Tolerations
	}
	if !equality.Semantic.DeepEqual(*munged, *old) {
		return field.ErrorList{field.Forbidden(path, updatablePodSpec)}
	}
	return nil
}

func isAddition(tolerations, old []corev1.Toleration) bool {
	return !slices.ContainsFunc(old, func(wanted corev1.Toleration) bool {
		same := func(have corev1.Toleration) bool { return equality.Semantic.DeepEqual(have, wanted) }
		return !slices.ContainsFunc(tolerations, same)
	})
}

// validateUniqueLabel checks that a name is a DNS label and is not in taken, and adds it to taken.
func validateUniqueLabel(name string, taken sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	problems := valid(name, validation.IsDNS1123Label, path)
	if taken.Has(name) {
		problems = append(problems, field.Duplicate(path, name))
	}
	taken.Insert(name)
	return problems
}

// valid is [check] for an optional value: an empty one has no problems.
func valid(value string, rule func(string) []string, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	return check(value, rule, path)
}

// check returns a problem for each error text that rule returns for value.
func check(value string, rule func(string) []string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, text := range rule(value) {
		problems = append(problems, field.Invalid(path, value, text))
	}
	return problems
}

const notNegative = "must be greater than or equal to 0"

// atLeast checks an optional number against its minimum; text is the error.
func atLeast[T int32 | int64](least T, n *T, text string, path *field.Path) field.ErrorList {
	if n == nil || *n >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *n, text)}
}

// oneOf checks that a value is allowed. The error lists the allowed values in order.
func oneOf[T ~string](value T, allowed []T, path *field.Path) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

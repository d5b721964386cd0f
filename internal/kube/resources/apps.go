package resources

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// workload has the fields that our kinds of apps/v1 share: each kind makes a number of pods from one template.
type workload struct {
	replicas, history **int32 // history is nil if the kind has none
	minReadySeconds   *int32
	selector          *metav1.LabelSelector
	template          *corev1.PodTemplateSpec
	current           int32 // number of pods in the status
}

func workloadOf(obj runtime.Object) workload {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		spec := &obj.Spec
		return workload{&spec.Replicas, &spec.RevisionHistoryLimit, &spec.MinReadySeconds, spec.Selector,
			&spec.Template, obj.Status.Replicas}
	case *appsv1.StatefulSet:
		spec := &obj.Spec
		return workload{&spec.Replicas, &spec.RevisionHistoryLimit, &spec.MinReadySeconds, spec.Selector,
			&spec.Template, obj.Status.Replicas}
	default:
		set := obj.(*appsv1.ReplicaSet)
		return workload{&set.Spec.Replicas, nil, &set.Spec.MinReadySeconds, set.Spec.Selector, &set.Spec.Template,
			set.Status.Replicas}
	}
}

// ScaleOf returns the scale subresource of a deployment, a replica set or a stateful set.
func ScaleOf(obj runtime.Object) *autoscalingv1.Scale {
	w, accessor := workloadOf(obj), obj.(metav1.Object)
	selector, _ := metav1.LabelSelectorAsSelector(w.selector) // validated when obj was written
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: accessor.GetName(), Namespace: accessor.GetNamespace(),
			UID: accessor.GetUID(), ResourceVersion: accessor.GetResourceVersion(),
			CreationTimestamp: accessor.GetCreationTimestamp()},
		Spec:   autoscalingv1.ScaleSpec{Replicas: **w.replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: w.current, Selector: selector.String()},
	}
}

// Scaled returns a copy of obj with wanted's resource version and number of replicas. The copy points into wanted.
func Scaled(obj runtime.Object, wanted *autoscalingv1.Scale) runtime.Object {
	scaled := obj.DeepCopyObject()
	*workloadOf(scaled).replicas = &wanted.Spec.Replicas
	scaled.(metav1.Object).SetResourceVersion(wanted.ResourceVersion)
	return scaled
}

// WorkloadStrategy is for deployments, replica sets and stateful sets. Upstream's are in
// k8s.io/kubernetes/pkg/registry/apps.
//
// Differs: a stateful set's own fields are only checked for changes, and a status is not checked.
type WorkloadStrategy struct{ SpecStrategy }

// Default sets missing fields, like SetDefaults_Deployment and its neighbors in k8s.io/kubernetes/pkg/apis/apps/v1.
//
// Differs: it does not complete the volume claims in a stateful set.
func (WorkloadStrategy) Default(obj runtime.Object) {
	w := workloadOf(obj)
	setDefault(w.replicas, new(int32(1)))
	if w.history != nil {
		setDefault(w.history, new(int32(10)))
	}
	defaultPodSpec(&w.template.Spec)
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		defaultDeployment(&obj.Spec)
	case *appsv1.StatefulSet:
		defaultStatefulSet(&obj.Spec)
	}
}

func defaultDeployment(spec *appsv1.DeploymentSpec) {
	setDefault(&spec.ProgressDeadlineSeconds, new(int32(600)))
	setDefault(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefault(&spec.Strategy.RollingUpdate, &appsv1.RollingUpdateDeployment{})
		setDefault(&spec.Strategy.RollingUpdate.MaxUnavailable, new(intstr.FromString("25%")))
		setDefault(&spec.Strategy.RollingUpdate.MaxSurge, new(intstr.FromString("25%")))
	}
}

func defaultStatefulSet(spec *appsv1.StatefulSetSpec) {
	setDefault(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setDefault(&spec.UpdateStrategy.RollingUpdate, &appsv1.RollingUpdateStatefulSetStrategy{})
	}
	rolling := spec.UpdateStrategy.RollingUpdate
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && rolling != nil {
		setDefault(&rolling.Partition, new(int32(0)))
		setDefault(&rolling.MaxUnavailable, new(intstr.FromInt32(1)))
	}
	setDefault(&spec.PersistentVolumeClaimRetentionPolicy, &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	retention := spec.PersistentVolumeClaimRetentionPolicy
	setDefault(&retention.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&retention.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
}

// PrepareForUpdate keeps the old status. A change of a deployment's annotations also raises the generation, because the
// controller copies annotations into replica sets.
func (s WorkloadStrategy) PrepareForUpdate(obj, old runtime.Object) {
	s.SpecStrategy.PrepareForUpdate(obj, old)
	deployment, ok := obj.(*appsv1.Deployment)
	if !ok {
		return
	}
	before := old.(*appsv1.Deployment)
	if deployment.Generation == before.Generation &&
		!equality.Semantic.DeepEqual(deployment.Annotations, before.Annotations) {
		deployment.Generation++
	}
}

// Validate checks the counts, the selector, the template, and a deployment's strategy and deadline.
func (WorkloadStrategy) Validate(obj runtime.Object) field.ErrorList {
	w, path := workloadOf(obj), field.NewPath("spec")
	problems := slices.Concat(
		atLeast(0, *w.replicas, notNegative, path.Child("replicas")),
		atLeast(0, w.minReadySeconds, notNegative, path.Child("minReadySeconds")),
		validateSelector(w, path))
	if w.history != nil {
		problems = append(problems, atLeast(0, *w.history, notNegative, path.Child("revisionHistoryLimit"))...)
	}
	path = path.Child("template", "spec")
	problems = append(problems, validatePodSpec(&w.template.Spec, path)...)
	if w.template.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		problems = append(problems, field.NotSupported(path.Child("restartPolicy"), w.template.Spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if deployment, ok := obj.(*appsv1.Deployment); ok {
		problems = append(problems, validateDeployment(&deployment.Spec, field.NewPath("spec"))...)
	}
	return problems
}

func validateSelector(w workload, path *field.Path) field.ErrorList {
	at := path.Child("selector")
	if w.selector == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	problems := metav1validation.ValidateLabelSelector(w.selector,
		metav1validation.LabelSelectorValidationOptions{}, at)
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	switch {
	case err != nil:
		return append(problems, field.Invalid(at, w.selector, "invalid label selector"))
	case selector.Empty():
		return append(problems, field.Invalid(at, w.selector, "empty selector is invalid for deployment"))
	case !selector.Matches(labels.Set(w.template.Labels)):
		return append(problems, field.Invalid(path.Child("template", "metadata", "labels"), w.template.Labels,
			"`selector` does not match template `labels`"))
	}
	return problems
}

// validateDeployment checks the deployment's strategy and deadline.
func validateDeployment(spec *appsv1.DeploymentSpec, path *field.Path) field.ErrorList {
	problems := atLeast(0, spec.ProgressDeadlineSeconds, notNegative, path.Child("progressDeadlineSeconds"))
	if *spec.ProgressDeadlineSeconds <= spec.MinReadySeconds {
		problems = append(problems, field.Invalid(path.Child("progressDeadlineSeconds"), *spec.ProgressDeadlineSeconds,
			"must be greater than minReadySeconds"))
	}
	path = path.Child("strategy")
	rolling := spec.Strategy.RollingUpdate
	switch spec.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if rolling != nil {
			problems = append(problems, field.Forbidden(path.Child("rollingUpdate"),
				"may not be specified when strategy `type` is 'Recreate'"))
		}
		return problems
	case appsv1.RollingUpdateDeploymentStrategyType:
	default:
		return append(problems, field.NotSupported(path, spec.Strategy, []string{
			string(appsv1.RecreateDeploymentStrategyType), string(appsv1.RollingUpdateDeploymentStrategyType)}))
	}
	path = path.Child("rollingUpdate")
	unavailable, wrong := share(rolling.MaxUnavailable, path.Child("maxUnavailable"))
	surge, more := share(rolling.MaxSurge, path.Child("maxSurge"))
	problems = slices.Concat(problems, wrong, more)
	path = path.Child("maxUnavailable")
	if unavailable == 0 && surge == 0 {
		problems = append(problems, field.Invalid(path, rolling.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
	}
	if rolling.MaxUnavailable.Type == intstr.String && unavailable > 100 {
		problems = append(problems, field.Invalid(path, rolling.MaxUnavailable, "must not be greater than 100%"))
	}
	return problems
}

// share returns the number, or the percentage without the percent sign, and the problems of an invalid value.
func share(value *intstr.IntOrString, path *field.Path) (n int, problems field.ErrorList) {
	if value.Type == intstr.Int {
		return value.IntValue(), atLeast(0, &value.IntVal, notNegative, path)
	}
	problems = check(value.StrVal, validation.IsValidPercent, path)
	if len(problems) == 0 {
		n, _ = intstr.GetScaledValueFromIntOrPercent(value, 100, false) // cannot fail after the check
	}
	return n, problems
}

// ValidateUpdate also refuses changes of the selector and, in a stateful set, of the volume claims, the service name
// and the pod management policy.
func (s WorkloadStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	problems := s.Validate(obj)
	keep := func(name string, value, before any) {
		if !equality.Semantic.DeepEqual(value, before) {
			problems = append(problems, field.Invalid(field.NewPath("spec", name), value, "field is immutable"))
		}
	}
	keep("selector", workloadOf(obj).selector, workloadOf(old).selector)
	if set, ok := obj.(*appsv1.StatefulSet); ok {
		before := old.(*appsv1.StatefulSet)
		keep("volumeClaimTemplates", set.Spec.VolumeClaimTemplates, before.Spec.VolumeClaimTemplates)
		keep("serviceName", set.Spec.ServiceName, before.Spec.ServiceName)
		keep("podManagementPolicy", set.Spec.PodManagementPolicy, before.Spec.PodManagementPolicy)
	}
	return problems
}

package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
	corev1.TaintEffectNoExecute}

// NodeAttrs returns a node's labels and selectable fields.
func NodeAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nil, nil, fmt.Errorf("not a node: %T", obj)
	}
	return node.Labels, fields.Set{"metadata.name": node.Name, "spec.unschedulable": fmt.Sprint(
		node.Spec.Unschedulable)}, nil
}

// NodeStrategy is for the spec of nodes. A new node keeps its status, with which the kubelet registers it.
type NodeStrategy struct{ freely }

// Validate checks taints and the ranges of pods' addresses.
func (NodeStrategy) Validate(obj runtime.Object) field.ErrorList {
	var problems field.ErrorList
	spec := &obj.(*corev1.Node).Spec
	for i, cidr := range spec.PodCIDRs {
		problems = append(problems, validation.IsValidCIDR(field.NewPath("spec", "podCIDRs").Index(i), cidr)...)
	}
	for i, taint := range spec.Taints {
		path := field.NewPath("metadata", "taints").Index(i)
		if taint.Key == "" {
			problems = append(problems, field.Required(path.Child("key"), ""))
		}
		problems = append(problems, oneOf(taint.Effect, taintEffects, path.Child("effect"))...)
	}
	return problems
}

// PrepareForUpdate keeps the status.
func (NodeStrategy) PrepareForUpdate(obj, old runtime.Object) {
	obj.(*corev1.Node).Status = old.(*corev1.Node).Status
}

// ValidateUpdate also refuses to change a provider ID or pod CIDR that is set.
func (s NodeStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	spec, oldSpec := &obj.(*corev1.Node).Spec, &old.(*corev1.Node).Spec
	problems := s.Validate(obj)
	if oldSpec.ProviderID != "" && spec.ProviderID != oldSpec.ProviderID {
		problems = append(problems, field.Forbidden(field.NewPath("spec", "providerID"), "node updates may not "+
			"change providerID except from \"\" to valid"))
	}
	if oldSpec.PodCIDR != "" && spec.PodCIDR != oldSpec.PodCIDR {
		problems = append(problems, field.Forbidden(field.NewPath("spec", "podCIDRs"), "node updates may not change "+
			"podCIDR except from \"\" to valid"))
	}
	return problems
}

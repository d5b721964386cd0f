package registry

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"listwatch/internal/resources"
)

// Nodes describes nodes.
func Nodes() *Resource {
	return &Resource{
		Name: "nodes", Singular: "node", Kind: "Node", ShortNames: []string{"no"},
		Prefix:         "/registry/minions",
		NewFunc:        func() runtime.Object { return &corev1.Node{} },
		NewListFunc:    func() runtime.Object { return &corev1.NodeList{} },
		GetAttrs:       nodeAttrs,
		Fields:         []string{"metadata.name", "spec.unschedulable"},
		Default:        func(runtime.Object) {},
		ValidateName:   validation.NameIsDNSSubdomain,
		Columns:        resources.NodeColumns(),
		Cells:          resources.NodeCells,
		Strategy:       nodeStrategy{},
		StatusStrategy: nodeStatusStrategy{},
	}
}

func nodeAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nil, nil, fmt.Errorf("not a node: %T", obj)
	}
	return node.Labels, fields.Set{"metadata.name": node.Name, "spec.unschedulable": fmt.Sprint(node.Spec.Unschedulable)}, nil
}

type nodeStrategy struct{}

// PrepareForCreate accepts the status: a kubelet registers its node with what it knows of itself.
func (nodeStrategy) PrepareForCreate(runtime.Object) {}

// Validate checks taints.
func (nodeStrategy) Validate(obj runtime.Object) field.ErrorList {
	var problems field.ErrorList
	for i, taint := range obj.(*corev1.Node).Spec.Taints {
		path := field.NewPath("spec", "taints").Index(i)
		if taint.Key == "" {
			problems = append(problems, field.Required(path.Child("key"), ""))
		}
		switch taint.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			effects := []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}
			problems = append(problems, field.NotSupported(path.Child("effect"), string(taint.Effect), effects))
		}
	}
	return problems
}

// PrepareForUpdate keeps the status.
func (nodeStrategy) PrepareForUpdate(obj, old runtime.Object) {
	obj.(*corev1.Node).Status = old.(*corev1.Node).Status
}

// ValidateUpdate also keeps what a node is given once.
func (s nodeStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	node, oldNode := obj.(*corev1.Node), old.(*corev1.Node)
	problems := s.Validate(obj)
	if oldNode.Spec.ProviderID != "" && node.Spec.ProviderID != oldNode.Spec.ProviderID {
		problems = append(problems, field.Forbidden(field.NewPath("spec", "providerID"), "node updates may not change providerID except from \"\" to valid"))
	}
	if oldNode.Spec.PodCIDR != "" && node.Spec.PodCIDR != oldNode.Spec.PodCIDR {
		problems = append(problems, field.Forbidden(field.NewPath("spec", "podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	return problems
}

type nodeStatusStrategy struct{ nodeStrategy }

// PrepareForUpdate keeps everything but the status and the metadata.
func (nodeStatusStrategy) PrepareForUpdate(obj, old runtime.Object) {
	obj.(*corev1.Node).Spec = *old.(*corev1.Node).Spec.DeepCopy()
}

package registry

import (
	"fmt"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Nodes describes nodes.
func Nodes() *Resource {
	return &Resource{
		Name: "nodes", Singular: "node", Kind: "Node", ShortNames: []string{"no"},
		Prefix:       "/registry/minions",
		NewFunc:      func() runtime.Object { return &corev1.Node{} },
		NewListFunc:  func() runtime.Object { return &corev1.NodeList{} },
		GetAttrs:     nodeAttrs,
		Fields:       []string{"metadata.name", "spec.unschedulable"},
		Default:      func(runtime.Object) {},
		ValidateName: validation.NameIsDNSSubdomain,
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Status", "string", "Whether the node is ready, and whether it takes new pods.", 0),
			column("Roles", "string", "Roles the node is labelled with.", 0),
			ageColumn(),
			column("Version", "string", "Version of the node's kubelet.", 0),
			column("Internal-IP", "string", "Address inside the cluster.", 1),
			column("External-IP", "string", "Address outside the cluster.", 1),
			column("OS-Image", "string", "Operating system.", 1),
			column("Kernel-Version", "string", "Version of its kernel.", 1),
			column("Container-Runtime", "string", "Runtime that runs the containers, with its version.", 1),
		},
		Cells:          nodeCells,
		Strategy:       nodeStrategy{},
		StatusStrategy: nodeStatusStrategy{},
	}
}

func nodeAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
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

func nodeCells(obj runtime.Object, now time.Time) []any {
	node := obj.(*corev1.Node)
	info := node.Status.NodeInfo
	unknown := func(s string) string {
		if s == "" {
			return "<unknown>"
		}
		return s
	}
	return []any{
		node.Name, nodeStatus(node), nodeRoles(node), age(node.CreationTimestamp, now), info.KubeletVersion,
		orNone(nodeAddress(node, corev1.NodeInternalIP)), orNone(nodeAddress(node, corev1.NodeExternalIP)),
		unknown(info.OSImage), unknown(info.KernelVersion), unknown(info.ContainerRuntimeVersion),
	}
}

func nodeStatus(node *corev1.Node) string {
	status := "Unknown"
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if condition.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(node *corev1.Node) string {
	var roles []string
	for label, value := range node.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if label == "kubernetes.io/role" && value != "" {
			roles = append(roles, value)
		}
	}
	sort.Strings(roles)
	return orNone(strings.Join(roles, ","))
}

func nodeAddress(node *corev1.Node, kind corev1.NodeAddressType) string {
	for _, address := range node.Status.Addresses {
		if address.Type == kind {
			return address.Address
		}
	}
	return ""
}

package resources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inTemplate returns a cell with a field of each container in the template.
func inTemplate(name string) func(*Row) any {
	return func(r *Row) any {
		containers, _ := r.field("spec.template.spec.containers").([]any)
		return join(containers, func(container any) string {
			text, _ := container.(map[string]any)[name].(string)
			return text
		})
	}
}

// join puts commas between the texts of some things.
func join[T any](things []T, text func(T) string) string {
	var texts []string
	for _, each := range things {
		texts = append(texts, text(each))
	}
	return strings.Join(texts, ",")
}

func externalAddresses(service *corev1.Service) any {
	var addresses []string
	switch service.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return service.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			addresses = append(addresses, cmp.Or(ingress.IP, ingress.Hostname))
		}
		slices.Sort(addresses)
		addresses = slices.Compact(addresses)
		if len(addresses)+len(service.Spec.ExternalIPs) == 0 {
			return "<pending>"
		}
	}
	return orNone(strings.Join(append(addresses, service.Spec.ExternalIPs...), ","))
}

func servicePorts(service *corev1.Service) any {
	return orNone(join(service.Spec.Ports, func(port corev1.ServicePort) string {
		if port.NodePort > 0 {
			return fmt.Sprintf("%d:%d/%s", port.Port, port.NodePort, port.Protocol)
		}
		return fmt.Sprintf("%d/%s", port.Port, port.Protocol)
	}))
}

// modes are the ways in which nodes may use a volume, in upstream's order, with their short names.
var modes = []struct {
	mode corev1.PersistentVolumeAccessMode
	name string
}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"},
	{corev1.ReadWriteOncePod, "RWOP"}}

// accessModes returns the cell of a list of them.
func accessModes(path string) func(*Row) any {
	return func(r *Row) any {
		list, _ := r.field(path).([]any)
		var names []string
		for _, each := range modes {
			if slices.Contains(list, any(string(each.mode))) {
				names = append(names, each.name)
			}
		}
		return strings.Join(names, ",")
	}
}

func volumePhase(r *Row) any {
	if r.Object.(metav1.Object).GetDeletionTimestamp() != nil {
		return "Terminating"
	}
	return show("status.phase", "")(r)
}

func deviceClaimState(claim *resourcev1.ResourceClaim) any {
	switch {
	case claim.Status.Allocation == nil && claim.DeletionTimestamp == nil:
		return "pending"
	case claim.Status.Allocation == nil:
		return "deleted"
	}
	state := "allocated"
	if claim.DeletionTimestamp != nil {
		state = "deleted," + state
	}
	if len(claim.Status.ReservedFor) > 0 {
		state += ",reserved"
	}
	return state
}

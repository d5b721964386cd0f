package resources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// NameAndAgeColumns are those of a kind that has no others.
var NameAndAgeColumns = NameAndAge()

// The columns of deployments, and of the other kinds that make pods.
var (
	DeploymentColumns = append(NameAndAge(readyColumn,
		Column{"Up-to-date", "How many pods have the newest template.", false,
			show("status.updatedReplicas", int64(0))},
		Column{"Available", "How many pods have been ready for long enough.", false,
			show("status.availableReplicas", int64(0))}),
		slices.Concat(containerColumns, selectorColumn)...)
	StatefulSetColumns = append(NameAndAge(readyColumn), containerColumns...)
	ReplicaColumns     = append(NameAndAge(
		Column{"Desired", "How many pods are wanted.", false, show("spec.replicas", int64(0))},
		Column{"Current", "How many pods there are.", false, show("status.replicas", int64(0))},
		Column{"Ready", "How many of them are ready.", false, show("status.readyReplicas", int64(0))}),
		slices.Concat(containerColumns, selectorColumn)...)

	readyColumn = Column{"Ready", "How many of the pods that are wanted are ready.", false, func(r *Row) any {
		return fmt.Sprintf("%v/%v", show("status.readyReplicas", int64(0))(r), show("spec.replicas", int64(0))(r))
	}}
	containerColumns = []Column{
		{"Containers", "Names of the containers in the template.", true, inTemplate("name")},
		{"Images", "Images of the containers in the template.", true, inTemplate("image")},
	}
	selectorColumn = []Column{{"Selector", "Which pods belong to it.", true, func(r *Row) any {
		if controller, ok := r.Object.(*corev1.ReplicationController); ok {
			return labels.FormatLabels(controller.Spec.Selector)
		}
		return metav1.FormatLabelSelector(workloadOf(r.Object).selector)
	}}}
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

// The columns of other kinds of core/v1.
var (
	SecretColumns = NameAndAge(Column{"Type", "What the secret is for.", false, show("type", "")},
		Column{"Data", "Number of entries.", false, count("data")})
	ServiceColumns = append(NameAndAge(
		Column{"Type", "How the service is reached.", false, show("spec.type", "")},
		Column{"Cluster-IP", "Address inside the cluster.", false, show("spec.clusterIP", "<none>")},
		Column{"External-IP", "Addresses outside the cluster.", false, by(externalAddresses)},
		Column{"Port(s)", "Ports of the service, and of nodes.", false, by(servicePorts)}),
		Column{"Selector", "Which pods serve it.", true, by(func(service *corev1.Service) any {
			return labels.FormatLabels(service.Spec.Selector)
		})})
	VolumeColumns = append(NameAndAge(
		Column{"Capacity", "Size.", false, show("spec.capacity.storage", "0")},
		Column{"Access Modes", "How nodes may use it.", false, accessModes("spec.accessModes")},
		Column{"Reclaim Policy", "What becomes of it without its claim.", false,
			show("spec.persistentVolumeReclaimPolicy", "")},
		Column{"Status", "Whether it is bound.", false, volumePhase},
		Column{"Claim", "Claim that it is bound to.", false, by(func(volume *corev1.PersistentVolume) any {
			if claim := volume.Spec.ClaimRef; claim != nil {
				return claim.Namespace + "/" + claim.Name
			}
			return ""
		})},
		Column{"StorageClass", "Class it belongs to.", false, show("spec.storageClassName", "")},
		attributesColumn,
		Column{"Reason", "Why it is in this state.", false, show("status.reason", "")}), modeColumn)
	ClaimColumns = append(NameAndAge(
		Column{"Status", "Whether it is bound.", false, volumePhase},
		Column{"Volume", "Volume it is bound to.", false, show("spec.volumeName", "")},
		Column{"Capacity", "Size of that.", false, show("status.capacity.storage", "")},
		Column{"Access Modes", "How nodes may use that.", false, accessModes("status.accessModes")},
		Column{"StorageClass", "Class it asks for.", false, show("spec.storageClassName", "")},
		attributesColumn), modeColumn)

	attributesColumn = Column{"VolumeAttributesClass", "Class of further qualities.", false,
		show("spec.volumeAttributesClassName", "<unset>")}
	modeColumn = Column{"VolumeMode", "Whether it has a file system.", true, show("spec.volumeMode", "<unset>")}
)

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

// modes are the ways in which nodes may use a volume, in upstream's order, with what a table says.
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

// The columns of kinds of other groups.
var (
	BudgetColumns = NameAndAge(
		Column{"Min Available", "How many pods must stay.", false, show("spec.minAvailable", "N/A")},
		Column{"Max Unavailable", "How many pods may be away.", false, show("spec.maxUnavailable", "N/A")},
		Column{"Allowed Disruptions", "How many pods may be evicted now.", false,
			show("status.disruptionsAllowed", int64(0))})
	ClassColumns = append([]Column{classNameColumn}, NameAndAge(
		Column{"Provisioner", "What makes its volumes.", false, show("provisioner", "")},
		Column{"ReclaimPolicy", "What becomes of them without their claims.", false, show("reclaimPolicy", "Delete")},
		Column{"VolumeBindingMode", "When they are bound.", false, show("volumeBindingMode", "Immediate")},
		Column{"AllowVolumeExpansion", "Whether they can grow.", false, show("allowVolumeExpansion", false)})[1:]...)
	classNameColumn = Column{nameColumn.Name, nameColumn.Description, false, by(func(class *storagev1.StorageClass) any {
		for _, annotation := range []string{"storageclass.kubernetes.io/", "storageclass.beta.kubernetes.io/"} {
			if class.Annotations[annotation+"is-default-class"] == "true" {
				return class.Name + " (default)"
			}
		}
		return class.Name
	})}
	CSINodeColumns = NameAndAge(Column{"Drivers", "Number of drivers on the node.", false, count("spec.drivers")})
	// CSIDriverColumns are those of csidrivers.
	CSIDriverColumns = NameAndAge(
		Column{"AttachRequired", "Whether volumes are attached.", false, show("spec.attachRequired", true)},
		Column{"PodInfoOnMount", "Whether it is told of the pod.", false, show("spec.podInfoOnMount", false)},
		Column{"StorageCapacity", "Whether the scheduler looks at capacities.", false,
			show("spec.storageCapacity", false)},
		Column{"TokenRequests", "Audiences of the tokens that it wants.", false,
			by(func(driver *storagev1.CSIDriver) any {
				if driver.Spec.TokenRequests == nil {
					return "<unset>"
				}
				return join(driver.Spec.TokenRequests, func(request storagev1.TokenRequest) string {
					return request.Audience
				})
			})},
		Column{"RequiresRepublish", "Whether volumes are published again and again.", false,
			show("spec.requiresRepublish", false)},
		Column{"Modes", "Which volumes it has.", false, by(func(driver *storagev1.CSIDriver) any {
			return orNone(join(driver.Spec.VolumeLifecycleModes, func(mode storagev1.VolumeLifecycleMode) string {
				return string(mode)
			}))
		})})
	// CapacityColumns are those of csistoragecapacities, which show no age.
	CapacityColumns = []Column{nameColumn,
		{"StorageClassName", "Class it is about.", false, show("storageClassName", "")},
		{"Capacity", "How much is left.", false, show("capacity", "<unset>")}}
	// AttachmentColumns are those of volumeattachments.
	AttachmentColumns = NameAndAge(Column{"Attacher", "What attaches the volume.", false, show("spec.attacher", "")},
		Column{"PV", "The volume.", false, show("spec.source.persistentVolumeName", "")},
		Column{"Node", "Node it is attached to.", false, show("spec.nodeName", "")},
		Column{"Attached", "Whether it is attached.", false, show("status.attached", false)})
	// DeviceClaimColumns are those of resourceclaims.
	DeviceClaimColumns = NameAndAge(Column{"State", "Whether it has devices.", false, by(deviceClaimState)})
	// SliceColumns are those of resourceslices.
	SliceColumns = NameAndAge(Column{"Node", "Node that has the devices.", false, show("spec.nodeName", "")},
		Column{"Driver", "What drives them.", false, show("spec.driver", "")},
		Column{"Pool", "Pool they belong to.", false, show("spec.pool.name", "")})
	// TaintRuleColumns are those of devicetaintrules.
	TaintRuleColumns = NameAndAge(Column{"Key", "Key of the taint.", false, show("spec.taint.key", "")},
		Column{"Value", "Its value.", false, show("spec.taint.value", "")},
		Column{"Effect", "What it does.", false, show("spec.taint.effect", "")},
		Column{"TimeAdded", "Time since it was set.", false, func(r *Row) any {
			if added := r.Object.(*resourcev1.DeviceTaintRule).Spec.Taint.TimeAdded; added != nil {
				return age(*added, r.Now)
			}
			return ""
		}})
)

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

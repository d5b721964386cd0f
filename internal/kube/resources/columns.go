package resources

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// columns are the columns of each resource's table. A resource that is not listed has name and age.
var columns = map[string][]Column{
	"configmaps": nameAndAge(Column{"Data", "Number of entries.", false, count("data", "binaryData")}),
	"csidrivers": nameAndAge(
		Column{"AttachRequired", "Whether volumes are attached.", false, show("spec.attachRequired", true)},
		Column{"PodInfoOnMount", "Whether it receives the pod's name.", false, show("spec.podInfoOnMount", false)},
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
		})}),
	"csinodes": nameAndAge(Column{"Drivers", "Number of drivers on the node.", false, count("spec.drivers")}),
	"csistoragecapacities": {nameColumn, // without the age, as upstream
		{"StorageClassName", "Class it is about.", false, show("storageClassName", "")},
		{"Capacity", "How much is left.", false, show("capacity", "<unset>")}},
	"deployments": append(nameAndAge(readyColumn,
		Column{"Up-to-date", "How many pods have the newest template.", false,
			show("status.updatedReplicas", int64(0))},
		Column{"Available", "How many pods have been ready for long enough.", false,
			show("status.availableReplicas", int64(0))}),
		slices.Concat(containerColumns, selectorColumn)...),
	"devicetaintrules": nameAndAge(Column{"Key", "Key of the taint.", false, show("spec.taint.key", "")},
		Column{"Value", "Its value.", false, show("spec.taint.value", "")},
		Column{"Effect", "What it does.", false, show("spec.taint.effect", "")},
		Column{"TimeAdded", "Time since it was set.", false, func(r *Row) any {
			if added := r.Object.(*resourcev1.DeviceTaintRule).Spec.Taint.TimeAdded; added != nil {
				return age(*added, r.Now)
			}
			return ""
		}}),
	"events": { // both groups have them
		{"Last Seen", "Time since it happened last.", false, func(r *Row) any {
			_, last, _ := eventTimes(r.Object.(*corev1.Event))
			return age(last, r.Now)
		}},
		{"Type", "Normal or Warning.", false, show("type", "")},
		{"Reason", "Why it happened, in one word.", false, show("reason", "")},
		{"Object", "What it happened to.", false, by(func(event *corev1.Event) any {
			return strings.ToLower(event.InvolvedObject.Kind) + "/" + event.InvolvedObject.Name
		})},
		{"Subobject", "Which part of that.", true, show("involvedObject.fieldPath", "")},
		{"Source", "Who reports it.", true, by(eventSource)},
		{"Message", "What happened.", false, by(func(event *corev1.Event) any {
			return strings.TrimSpace(event.Message)
		})},
		{"First Seen", "Time since it happened first.", true, func(r *Row) any {
			first, _, _ := eventTimes(r.Object.(*corev1.Event))
			return age(first, r.Now)
		}},
		{"Count", "How often it happened.", true, by(func(event *corev1.Event) any {
			_, _, n := eventTimes(event)
			return n
		})},
		{nameColumn.Name, nameColumn.Description, true, nameColumn.Cell}},
	"leases":     nameAndAge(Column{"Holder", "Who holds the lease.", false, show("spec.holderIdentity", "<none>")}),
	"namespaces": nameAndAge(Column{"Status", "Active, or Terminating.", false, show("status.phase", "")}),
	"nodes": append(nameAndAge(
		Column{"Status", "Whether the node is ready, and whether it takes new pods.", false, by(nodeStatus)},
		Column{"Roles", "Roles the node is labelled with.", false, by(nodeRoles)},
	),
		Column{"Version", "Version of the node's kubelet.", false, show("status.nodeInfo.kubeletVersion", "")},
		Column{"Internal-IP", "Address inside the cluster.", true, nodeAddress(corev1.NodeInternalIP)},
		Column{"External-IP", "Address outside the cluster.", true, nodeAddress(corev1.NodeExternalIP)},
		Column{"OS-Image", "Operating system.", true, show("status.nodeInfo.osImage", "<unknown>")},
		Column{"Kernel-Version", "Version of its kernel.", true, show("status.nodeInfo.kernelVersion", "<unknown>")},
		Column{"Container-Runtime", "Runtime that runs the containers, with its version.", true,
			show("status.nodeInfo.containerRuntimeVersion", "<unknown>")},
	),
	"persistentvolumeclaims": append(nameAndAge(
		Column{"Status", "Whether it is bound.", false, volumePhase},
		Column{"Volume", "Volume it is bound to.", false, show("spec.volumeName", "")},
		Column{"Capacity", "Size of that.", false, show("status.capacity.storage", "")},
		Column{"Access Modes", "How nodes may use that.", false, accessModes("status.accessModes")},
		Column{"StorageClass", "Class it asks for.", false, show("spec.storageClassName", "")},
		attributesColumn), modeColumn),
	"persistentvolumes": append(nameAndAge(
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
		Column{"Reason", "Why it is in this state.", false, show("status.reason", "")}), modeColumn),
	"poddisruptionbudgets": nameAndAge(
		Column{"Min Available", "How many pods must stay.", false, show("spec.minAvailable", "N/A")},
		Column{"Max Unavailable", "How many pods may be away.", false, show("spec.maxUnavailable", "N/A")},
		Column{"Allowed Disruptions", "How many pods may be evicted now.", false,
			show("status.disruptionsAllowed", int64(0))}),
	"pods": append(nameAndAge(
		Column{"Ready", "How many of the pod's containers are ready to serve.", false, by(podReady)},
		Column{"Status", "What the pod is doing, as a summary of its containers' states.", false, by(podReason)},
		Column{"Restarts", "How often containers of the pod have been restarted, and when last.", false, podRestarts},
	),
		Column{"IP", "Address of the pod.", true, by(func(pod *corev1.Pod) any { return orNone(podAddress(pod)) })},
		Column{"Node", "Node the pod is bound to.", true, by(func(pod *corev1.Pod) any {
			return orNone(pod.Spec.NodeName)
		})},
		Column{"Nominated Node", "Node on which room is being made for the pod.", true, by(func(pod *corev1.Pod) any {
			return orNone(pod.Status.NominatedNodeName)
		})},
		Column{"Readiness Gates", "How many of the pod's further conditions for readiness hold.", true,
			by(readinessGates)},
	),
	"replicasets":            replicaColumns,
	"replicationcontrollers": replicaColumns,
	"resourceclaims":         nameAndAge(Column{"State", "Whether it has devices.", false, by(deviceClaimState)}),
	"resourceslices": nameAndAge(Column{"Node", "Node that has the devices.", false, show("spec.nodeName", "")},
		Column{"Driver", "What drives them.", false, show("spec.driver", "")},
		Column{"Pool", "Pool they belong to.", false, show("spec.pool.name", "")}),
	"secrets": nameAndAge(Column{"Type", "What the secret is for.", false, show("type", "")},
		Column{"Data", "Number of entries.", false, count("data")}),
	"services": append(nameAndAge(
		Column{"Type", "How the service is reached.", false, show("spec.type", "")},
		Column{"Cluster-IP", "Address inside the cluster.", false, show("spec.clusterIP", "<none>")},
		Column{"External-IP", "Addresses outside the cluster.", false, by(externalAddresses)},
		Column{"Port(s)", "Ports of the service, and of nodes.", false, by(servicePorts)}),
		Column{"Selector", "Which pods serve it.", true, by(func(service *corev1.Service) any {
			return labels.FormatLabels(service.Spec.Selector)
		})}),
	"scales": nameAndAge(Column{"Desired", "How many pods are wanted.", false, show("spec.replicas", int64(0))},
		Column{"Available", "How many there are.", false, show("status.replicas", int64(0))}),
	"statefulsets": append(nameAndAge(readyColumn), containerColumns...),
	"storageclasses": append([]Column{classNameColumn}, nameAndAge(
		Column{"Provisioner", "What makes its volumes.", false, show("provisioner", "")},
		Column{"ReclaimPolicy", "What becomes of them without their claims.", false, show("reclaimPolicy", "Delete")},
		Column{"VolumeBindingMode", "When they are bound.", false, show("volumeBindingMode", "Immediate")},
		Column{"AllowVolumeExpansion", "Whether they can grow.", false, show("allowVolumeExpansion", false)})[1:]...),
	"volumeattachments": nameAndAge(
		Column{"Attacher", "What attaches the volume.", false, show("spec.attacher", "")},
		Column{"PV", "The volume.", false, show("spec.source.persistentVolumeName", "")},
		Column{"Node", "Node it is attached to.", false, show("spec.nodeName", "")},
		Column{"Attached", "Whether it is attached.", false, show("status.attached", false)}),
}

// The columns that several kinds have.
var (
	nameColumn = Column{"Name", "Name of the object, unique within its namespace.", false, func(r *Row) any {
		return r.Object.(metav1.Object).GetName()
	}}
	ageColumn = Column{"Age", "Time since the object was created.", false, func(r *Row) any {
		return age(r.Object.(metav1.Object).GetCreationTimestamp(), r.Now)
	}}
	classNameColumn = Column{nameColumn.Name, nameColumn.Description, false,
		by(func(class *storagev1.StorageClass) any {
			for _, annotation := range []string{"storageclass.kubernetes.io/", "storageclass.beta.kubernetes.io/"} {
				if class.Annotations[annotation+"is-default-class"] == "true" {
					return class.Name + " (default)"
				}
			}
			return class.Name
		})}
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
	replicaColumns = append(nameAndAge(
		Column{"Desired", "How many pods are wanted.", false, show("spec.replicas", int64(0))},
		Column{"Current", "How many pods there are.", false, show("status.replicas", int64(0))},
		Column{"Ready", "How many of them are ready.", false, show("status.readyReplicas", int64(0))}),
		slices.Concat(containerColumns, selectorColumn)...)
	attributesColumn = Column{"VolumeAttributesClass", "Class of further qualities.", false,
		show("spec.volumeAttributesClassName", "<unset>")}
	modeColumn = Column{"VolumeMode", "Whether it has a file system.", true, show("spec.volumeMode", "<unset>")}
)

// nameAndAge returns the columns that every kind has, with its own between them.
func nameAndAge(own ...Column) []Column {
	return slices.Concat([]Column{nameColumn}, own, []Column{ageColumn})
}

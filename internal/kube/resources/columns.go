package resources

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/kube/scheme"
)

// columns are the columns of each resource's table. Resources that are not listed have a name and an age.
//
// Differs: upstream has more columns for drivers, devices and volume attachments.
var columns = map[string][]Column{
	"configmaps": nameAndAge(Column{"Data", "Number of entries.", false, count("data", "binaryData")}),
	"deployments": append(nameAndAge(readyColumn,
		Column{"Up-to-date", "How many pods have the newest template.", false,
			show("status.updatedReplicas", int64(0))},
		Column{"Available", "How many pods have been ready for long enough.", false,
			show("status.availableReplicas", int64(0))}),
		slices.Concat(containerColumns, selectorColumn)...),
	"events": { // for the events of both groups
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
		Column{"IP", "Address of the pod.", true, by(func(pod *corev1.Pod) any {
			return orNone(podAddress(&pod.Status))
		})},
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
}

// These columns are shared by several kinds, except classNameColumn, which only storage classes have.
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

// nameAndAge returns a kind's own columns between those of the name and the age.
func nameAndAge(own ...Column) []Column {
	return slices.Concat([]Column{nameColumn}, own, []Column{ageColumn})
}

// Column is one column of a kind's table.
type Column struct {
	Name, Description string
	Wide              bool // shown only in wide tables
	Cell              func(*Row) any
}

// Row is the input of a row's cells. Only one goroutine may use it.
type Row struct {
	Object runtime.Object // in its stored type: events are core/v1
	Now    time.Time
	fields map[string]any // Object as JSON; nil until a cell needs it
}

// Table turns an object or a list of a resource into rows for people. Each row has its object, which the caller may
// reduce. With headers, the table describes its columns.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: TableConvertor
// Differs: upstream's is a method of every storage.
func Table(obj runtime.Object, resource string, headers bool, now time.Time) (*metav1.Table, error) {
	table, shown := &metav1.Table{}, columns[resource]
	if shown == nil {
		shown = nameAndAge()
	}
	if headers {
		table.ColumnDefinitions = definitions(shown)
	}
	add := func(item runtime.Object) error {
		stored, err := scheme.Stored(item)
		if err != nil {
			return err
		}
		row := &Row{Object: stored, Now: now}
		cells := make([]any, len(shown))
		for i := range shown {
			cells[i] = shown[i].Cell(row)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: item}})
		return nil
	}
	if !meta.IsListType(obj) {
		table.ResourceVersion = obj.(metav1.Object).GetResourceVersion()
		return table, add(obj)
	}
	list, err := meta.ListAccessor(obj)
	if err != nil {
		return nil, err
	}
	table.ResourceVersion, table.Continue, table.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(),
		list.GetRemainingItemCount()
	table.Rows = make([]metav1.TableRow, 0, meta.LenList(obj))
	return table, meta.EachListItem(obj, add)
}

func definitions(shown []Column) (described []metav1.TableColumnDefinition) {
	for _, c := range shown {
		d := metav1.TableColumnDefinition{Name: c.Name, Type: "string", Description: c.Description}
		if c.Name == nameColumn.Name {
			d.Format = "name" // identifies the row
		}
		if c.Wide {
			d.Priority = 1
		}
		described = append(described, d)
	}
	return described
}

// field returns the value at a path of JSON names, such as "spec.nodeName"; nil: there is none.
func (r *Row) field(path string) any {
	if r.fields == nil {
		// There is no error, because every stored object can be converted to JSON.
		r.fields, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(r.Object)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(r.fields, strings.Split(path, ".")...)
	return value
}

// show returns a cell with the value of a field, or with the value of otherwise if the field is missing or empty.
func show(path string, otherwise any) func(*Row) any {
	return func(r *Row) any {
		if value := r.field(path); value != nil && value != "" {
			return value
		}
		return otherwise
	}
}

// count returns a cell with the total number of entries in some lists and maps.
func count(paths ...string) func(*Row) any {
	return func(r *Row) any {
		n := 0
		for _, path := range paths {
			switch value := r.field(path).(type) {
			case []any:
				n += len(value)
			case map[string]any:
				n += len(value)
			}
		}
		return int64(n)
	}
}

// by returns a cell with the result of make for the object.
func by[T runtime.Object](make func(T) any) func(*Row) any {
	return func(r *Row) any { return make(r.Object.(T)) }
}

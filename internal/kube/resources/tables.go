package resources

import (
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Table turns an object or a list into rows for people. Each row carries its object; what of that is sent is the
// caller's business. columns may be left out; cells makes a row's.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: TableConvertor
// Differs: a method of every storage there.
func Table(obj runtime.Object, columns []metav1.TableColumnDefinition, cells func(runtime.Object, time.Time) []any,
	now time.Time) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: columns}
	add := func(item runtime.Object) error {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells(item, now), Object: runtime.RawExtension{
			Object: item}})
		return nil
	}
	if !meta.IsListType(obj) {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		table.ResourceVersion = accessor.GetResourceVersion()
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

// Each kind has columns, and cells: one row, with a value for each column.

// ConfigMapColumns are the columns of a table of configmaps.
func ConfigMapColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(), column("Data", "string", "Number of entries.", 0), ageColumn(),
	}
}

// ConfigMapCells returns a configmap's row.
func ConfigMapCells(obj runtime.Object, now time.Time) []any {
	configMap := obj.(*corev1.ConfigMap)
	return []any{configMap.Name, int64(len(configMap.Data) + len(configMap.BinaryData)),
		age(configMap.CreationTimestamp, now)}
}

// NamespaceColumns are the columns of a table of namespaces.
func NamespaceColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(), column("Status", "string", "Active, or Terminating.", 0), ageColumn(),
	}
}

// NamespaceCells returns a namespace's row.
func NamespaceCells(obj runtime.Object, now time.Time) []any {
	namespace := obj.(*corev1.Namespace)
	return []any{namespace.Name, string(namespace.Status.Phase), age(namespace.CreationTimestamp, now)}
}

// NodeColumns are the columns of a table of nodes.
func NodeColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
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
	}
}

// NodeCells returns a node's row.
func NodeCells(obj runtime.Object, now time.Time) []any {
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

// EventColumns are the columns of a table of events.
func EventColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		column("Last Seen", "string", "Time since it happened last.", 0),
		column("Type", "string", "Normal or Warning.", 0),
		column("Reason", "string", "Why it happened, in one word.", 0),
		column("Object", "string", "What it happened to.", 0),
		column("Subobject", "string", "Which part of that.", 1),
		column("Source", "string", "Who reports it.", 1),
		column("Message", "string", "What happened.", 0),
		column("First Seen", "string", "Time since it happened first.", 1),
		column("Count", "string", "How often it happened.", 1),
		withPriority(nameColumn(), 1),
	}
}

func withPriority(c metav1.TableColumnDefinition, priority int32) metav1.TableColumnDefinition {
	c.Priority = priority
	return c
}

// EventCells returns an event's row.
func EventCells(obj runtime.Object, now time.Time) []any {
	event := obj.(*corev1.Event)
	first, last, count := event.FirstTimestamp, event.LastTimestamp, int64(event.Count)
	if first.IsZero() {
		first = metav1.NewTime(event.EventTime.Time)
	}
	if event.Series != nil {
		last, count = metav1.NewTime(event.Series.LastObservedTime.Time), int64(event.Series.Count)
	}
	if last.IsZero() {
		last = first
	}
	if count == 0 {
		count = 1
	}
	object := strings.ToLower(event.InvolvedObject.Kind) + "/" + event.InvolvedObject.Name
	source := event.Source.Component
	if source == "" {
		source = event.ReportingController
	}
	if event.Source.Host != "" {
		source += ", " + event.Source.Host
	}
	return []any{
		age(last, now), event.Type, event.Reason, object, event.InvolvedObject.FieldPath, source,
		strings.TrimSpace(event.Message), age(first, now), count, event.Name,
	}
}

// column describes a column; priority 0 is always shown, 1 only when people ask for a wide table.
func column(name, kind, description string, priority int32) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description, Priority: priority}
}

// nameColumn marks the column that identifies the row.
func nameColumn() metav1.TableColumnDefinition {
	c := column("Name", "string", "Name of the object, unique within its namespace.", 0)
	c.Format = "name"
	return c
}

func ageColumn() metav1.TableColumnDefinition {
	return column("Age", "string", "Time since the object was created.", 0)
}

// age returns the time since t as people say it: "5m", "3h12m", "<unknown>".
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

package resources

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"listwatch/internal/kube/scheme"
)

// Column is one column of a kind's table.
type Column struct {
	Name, Description string
	Wide              bool // shown only in wide tables
	Cell              func(*Row) any
}

// Row is the input of a row's cells. It belongs to one goroutine.
type Row struct {
	Object runtime.Object // the stored type: events are core/v1
	Now    time.Time
	fields map[string]any // Object as JSON; nil until a cell needs it
}

// Table turns an object or a list of a resource into rows for people. Each row carries its object: the caller decides
// what of that is sent. headers says whether the table describes its columns.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: TableConvertor
// Differs: a method of every storage there.
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

// field returns the value at a path of JSON names, such as "spec.nodeName"; nil if there is none.
func (r *Row) field(path string) any {
	if r.fields == nil {
		// No error: every object that is stored can be written as JSON.
		r.fields, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(r.Object)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(r.fields, strings.Split(path, ".")...)
	return value
}

// show returns a cell with the value of a field, or otherwise if the object does not have it.
func show(path string, otherwise any) func(*Row) any {
	return func(r *Row) any {
		if value := r.field(path); value != nil && value != "" {
			return value
		}
		return otherwise
	}
}

// count returns a cell that counts the entries of lists and maps together.
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

// by returns a cell that calls make with the object.
func by[T runtime.Object](make func(T) any) func(*Row) any {
	return func(r *Row) any { return make(r.Object.(T)) }
}

func nodeStatus(node *corev1.Node) any {
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

func nodeRoles(node *corev1.Node) any {
	var roles []string
	for label, value := range node.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if label == "kubernetes.io/role" && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	return orNone(strings.Join(roles, ","))
}

func nodeAddress(kind corev1.NodeAddressType) func(*Row) any {
	return by(func(node *corev1.Node) any {
		for _, address := range node.Status.Addresses {
			if address.Type == kind {
				return orNone(address.Address)
			}
		}
		return "<none>"
	})
}

// eventTimes returns when an event was seen first and last, and how often.
func eventTimes(event *corev1.Event) (first, last metav1.Time, n int64) {
	first, last, n = event.FirstTimestamp, event.LastTimestamp, int64(event.Count)
	if first.IsZero() {
		first = metav1.NewTime(event.EventTime.Time)
	}
	if event.Series != nil {
		last, n = metav1.NewTime(event.Series.LastObservedTime.Time), int64(event.Series.Count)
	}
	if last.IsZero() {
		last = first
	}
	return first, last, max(n, 1)
}

func eventSource(event *corev1.Event) any {
	source := cmp.Or(event.Source.Component, event.ReportingController)
	if event.Source.Host != "" {
		source += ", " + event.Source.Host
	}
	return source
}

// age returns the time since t in short: "5m", "3h12m", "<unknown>".
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func orNone(s string) string { return cmp.Or(s, "<none>") }

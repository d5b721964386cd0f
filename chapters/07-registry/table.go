package registry

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// ConvertToTable turns an object or a list into rows for people. Each row carries its object; what of that is sent is
// the caller's business. With options.NoHeaders there are no column definitions.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: TableConvertor
// Differs: the printers of the kinds live beside their strategies; upstream has them in kubernetes/pkg/printers.
func (s *Store) ConvertToTable(_ context.Context, obj runtime.Object, options *metav1.TableOptions) (*metav1.Table, error) {
	table := &metav1.Table{}
	if options == nil || !options.NoHeaders {
		table.ColumnDefinitions = s.resource.Columns
	}
	if list, err := meta.ListAccessor(obj); err == nil && meta.IsListType(obj) {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	} else if accessor, err := meta.Accessor(obj); err == nil {
		table.ResourceVersion = accessor.GetResourceVersion()
	}
	now := s.clock.Now()
	if !meta.IsListType(obj) {
		table.Rows = []metav1.TableRow{s.row(obj, now)}
		return table, nil
	}
	table.Rows = make([]metav1.TableRow, 0, meta.LenList(obj))
	err := meta.EachListItem(obj, func(item runtime.Object) error {
		table.Rows = append(table.Rows, s.row(item, now))
		return nil
	})
	return table, err
}

func (s *Store) row(obj runtime.Object, now time.Time) metav1.TableRow {
	return metav1.TableRow{Cells: s.resource.Cells(obj, now), Object: runtime.RawExtension{Object: obj}}
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

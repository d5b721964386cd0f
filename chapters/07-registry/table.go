package registry

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

package storage

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// AttrFunc returns what selectors may see of an object: its labels and its selectable fields. It is not a type check,
// though it fails for an object of another type. The fields may be a view of the object: they are good as long as the
// object does not change.
//
// Upstream: k8s.io/apiserver/pkg/storage/selection_predicate.go: AttrFunc
// Differs: fields are an interface. Upstream fills a map for every object, and a selector asks for few of its entries.
type AttrFunc func(obj runtime.Object) (labels.Set, fields.Fields, error)

// SelectionPredicate is the question "is this object wanted?", with the paging of a list
// attached.
//
// Upstream: k8s.io/apiserver/pkg/storage/selection_predicate.go: SelectionPredicate
// Differs: no label indexes, no shard selector.
type SelectionPredicate struct {
	Label    labels.Selector
	Field    fields.Selector
	GetAttrs AttrFunc

	// Lists only.
	Limit    int64
	Continue string

	// Watches only.
	AllowWatchBookmarks bool
}

// Everything selects every object.
var Everything = SelectionPredicate{Label: labels.Everything(), Field: fields.Everything()}

// Empty reports whether every object is selected, so that no object need be looked at.
func (s *SelectionPredicate) Empty() bool {
	return (s.Label == nil || s.Label.Empty()) && (s.Field == nil || s.Field.Empty())
}

// Describe returns both selectors as they are written, "" for one that selects every object.
func (s *SelectionPredicate) Describe() (labels, fields string) {
	if s.Label != nil && !s.Label.Empty() {
		labels = s.Label.String()
	}
	if s.Field != nil && !s.Field.Empty() {
		fields = s.Field.String()
	}
	return labels, fields
}

// Matches reports whether obj is selected. Its error is that of GetAttrs, which is not asked if the predicate is empty.
func (s *SelectionPredicate) Matches(obj runtime.Object) (bool, error) {
	if s.Empty() {
		return true, nil
	}
	labels, fields, err := s.GetAttrs(obj)
	if err != nil {
		return false, err
	}
	return s.MatchesObjectAttributes(labels, fields), nil
}

// MatchesObjectAttributes is Matches for an object whose attributes are known already.
func (s *SelectionPredicate) MatchesObjectAttributes(l labels.Set, f fields.Fields) bool {
	if s.Label != nil && !s.Label.Matches(l) {
		return false
	}
	return s.Field == nil || s.Field.Matches(f)
}

// MatchesSingle returns the name of the only object that can be selected, if the field selector pins it and the
// request does not continue a list.
func (s *SelectionPredicate) MatchesSingle() (name string, ok bool) {
	if s.Continue != "" || s.Field == nil {
		return "", false
	}
	return s.Field.RequiresExactMatch("metadata.name")
}

// MatchesSingleNamespace returns the only namespace in which objects can be selected, if the field selector pins it.
//
// Upstream: k8s.io/apiserver/pkg/storage/selection_predicate.go: (*SelectionPredicate).MatchesSingleNamespace
// Differs: narrows a list's later pages, too: a token's key is relative to the directory of the first page. Upstream
// reads all namespaces for a later page, from a wrong key: it repeats or skips objects.
func (s *SelectionPredicate) MatchesSingleNamespace() (namespace string, ok bool) {
	if s.Field == nil {
		return "", false
	}
	return s.Field.RequiresExactMatch("metadata.namespace")
}

// Trigger is the one field by which the cache finds objects and watchers without scanning: for pods "spec.nodeName". A
// nil Trigger is none.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: indexedTriggerFunc
// Differs: serves lists, too. Upstream's predicate names the fields to look for. The constructor refuses a second
// trigger, but lists have any number of indices, and use the first that their predicate pins.
type Trigger struct {
	Field   string
	ValueOf func(obj runtime.Object) string
}

// PinnedBy returns the value to which pred pins the field, if it does.
func (t *Trigger) PinnedBy(pred *SelectionPredicate) (value string, ok bool) {
	if t == nil || pred.Field == nil {
		return "", false
	}
	return pred.Field.RequiresExactMatch(t.Field)
}

// DefaultNamespaceScopedAttr returns the labels of obj and the two fields every namespaced object has.
func DefaultNamespaceScopedAttr(obj runtime.Object) (labels.Set, fields.Fields, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	return accessor.GetLabels(), fields.Set{
		"metadata.name":      accessor.GetName(),
		"metadata.namespace": accessor.GetNamespace(),
	}, nil
}

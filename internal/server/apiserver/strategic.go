package apiserver

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// strategicMergePatch applies a patch whose lists are merged. How, is said by the tags of the Go type or, for an object
// that has none, by the field types.
func strategicMergePatch(original, patch []byte, empty runtime.Object) ([]byte, error) {
	kept, ok := empty.(*unstructured.Unstructured)
	if !ok {
		return strategicpatch.StrategicMergePatch(original, patch, empty)
	}
	types := &typeConverter().parser.Schema
	return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(original, patch,
		typeMeta{types, schema.TypeRef{NamedType: new(typeName(kept.GroupVersionKind()))}})
}

// typeMeta is one of the field types as the library wants it. A type that is not known has no fields, and nothing of it
// is merged.
type typeMeta struct {
	types *schema.Schema
	ref   schema.TypeRef
}

// Name implements [strategicpatch.LookupPatchMeta].
func (m typeMeta) Name() string { return "" }

// LookupPatchMetadataForStruct implements [strategicpatch.LookupPatchMeta].
func (m typeMeta) LookupPatchMetadataForStruct(key string) (
	strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	return m.field(key), strategicpatch.PatchMeta{}, nil
}

// LookupPatchMetadataForSlice implements [strategicpatch.LookupPatchMeta].
func (m typeMeta) LookupPatchMetadataForSlice(key string) (
	strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	list := m.field(key)
	how := strategicpatch.PatchMeta{}
	atom, _ := list.types.Resolve(list.ref)
	if atom.List == nil || atom.List.ElementRelationship != schema.Associative {
		return list, how, nil
	}
	how.SetPatchStrategies([]string{"merge"})
	if keys := atom.List.Keys; len(keys) > 0 {
		how.SetPatchMergeKey(keys[0])
	}
	return typeMeta{m.types, atom.List.ElementType}, how, nil
}

// field returns the type of a field, or of a map's values.
func (m typeMeta) field(key string) typeMeta {
	atom, _ := m.types.Resolve(m.ref)
	if atom.Map == nil {
		return typeMeta{types: m.types}
	}
	if field, ok := atom.Map.FindField(key); ok {
		return typeMeta{m.types, field.Type}
	}
	return typeMeta{m.types, atom.Map.ElementType}
}

package indexer

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
)

// NamespaceIndex is the customary name of the index that [MetaNamespaceIndexFunc] feeds.
//
// Upstream: k8s.io/client-go/tools/cache/index.go: NamespaceIndex
const NamespaceIndex = "namespace"

// IndexFunc returns the values under which obj is to be found; without values, obj is in no
// set. Each write calls it under the store's write lock, for the old object and the new, and
// AddIndexers for every object. So it must be quick, return the same each time, and not call
// the store. After an error the store panics; only [Indexer.Index] returns the error.
//
// Upstream: k8s.io/client-go/tools/cache/index.go: IndexFunc
type IndexFunc func(obj any) ([]string, error)

// Indexers maps the name of an index to the function that feeds it.
//
// Upstream: k8s.io/client-go/tools/cache/index.go: Indexers
type Indexers map[string]IndexFunc

// MetaNamespaceIndexFunc indexes objects by namespace, "" if they have none. It fails only without metadata.
//
// Upstream: k8s.io/client-go/tools/cache/index.go: MetaNamespaceIndexFunc
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return []string{""}, fmt.Errorf("object has no meta: %w", err)
	}
	return []string{accessor.GetNamespace()}, nil
}

// index maps an indexed value to the keys of the objects found under it. No set in it is empty: values that come and
// go, such as the names of short-lived objects, would otherwise stay forever.
type index map[string]sets.Set[string]

// storeIndex holds all indices of a store. It has no lock of its own.
//
//	indices  "namespace" ─► "default" ─► { a, b }
//	                        "system"  ─► { c }
//	         "node"      ─► "node-1"  ─► { a, c }
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: storeIndex
type storeIndex struct {
	indexers Indexers
	indices  map[string]index // for every name in indexers
}

func newStoreIndex(indexers Indexers) storeIndex {
	s := storeIndex{indexers: Indexers{}, indices: map[string]index{}}
	_ = s.add(indexers) // none of them exists yet
	return s
}

// add adds more indexers, which must all be new. The caller indexes what is already stored.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*storeIndex).addIndexers
func (s *storeIndex) add(indexers Indexers) error {
	for name := range indexers {
		if _, exists := s.indexers[name]; exists {
			return fmt.Errorf("indexer conflict: %s exists", name)
		}
	}
	maps.Copy(s.indexers, indexers)
	for name := range indexers {
		s.indices[name] = index{}
	}
	return nil
}

// update moves key in every index from the values of old to those of obj; nil has no values.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*storeIndex).updateIndices
func (s *storeIndex) update(key string, old, obj any) {
	for name, indexFunc := range s.indexers {
		s.updateSingle(name, indexFunc, key, old, obj)
	}
}

// updateSingle is update for one index.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*storeIndex).updateSingleIndex
func (s *storeIndex) updateSingle(name string, indexFunc IndexFunc, key string, old, obj any) {
	oldValues := indexFunc.values(name, key, old)
	newValues := indexFunc.values(name, key, obj)
	if slices.Equal(oldValues, newValues) {
		return // the most common case: an update that does not move the object
	}
	idx := s.indices[name]
	for _, value := range oldValues {
		idx.remove(value, key)
	}
	for _, value := range newValues {
		idx.insert(value, key)
	}
}

// values returns the values of obj in the index of that name; nil has none.
func (f IndexFunc) values(name, key string, obj any) []string {
	if obj == nil {
		return nil
	}
	values, err := f(obj)
	if err != nil {
		panic(fmt.Sprintf("indexer: index %q of %q: %v", name, key, err))
	}
	return values
}

func (i index) insert(value, key string) {
	keys := i[value]
	if keys == nil {
		keys = sets.Set[string]{}
		i[value] = keys
	}
	keys.Insert(key)
}

func (i index) remove(value, key string) {
	keys := i[value]
	keys.Delete(key)
	if len(keys) == 0 {
		delete(i, value)
	}
}

// find returns the keys under value.
func (s *storeIndex) find(name, value string) (sets.Set[string], error) {
	idx, exists := s.indices[name]
	if !exists {
		return nil, fmt.Errorf("index %s does not exist", name)
	}
	return idx[value], nil
}

// findLike returns the keys of the objects that share at least one value with obj.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*storeIndex).getKeysFromIndex
func (s *storeIndex) findLike(name string, obj any) (sets.Set[string], error) {
	indexFunc, exists := s.indexers[name]
	if !exists {
		return nil, fmt.Errorf("index %s does not exist", name)
	}
	values, err := indexFunc(obj)
	if err != nil {
		return nil, err
	}
	if len(values) == 1 {
		return s.indices[name][values[0]], nil
	}
	union := sets.Set[string]{}
	for _, value := range values {
		maps.Copy(union, s.indices[name][value])
	}
	return union, nil
}

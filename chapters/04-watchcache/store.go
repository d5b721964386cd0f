package watchcache

import (
	"iter"
	"slices"
	"strings"
)

// IndexFunc returns the value under which an index files an element.
type IndexFunc func(e *Element) string

// store holds the current elements, ordered by key, and the indices over them.
//
// The order makes a list of one namespace a walk over neighbours, and paging a walk that begins
// in the middle. A [tree] never changes: an event puts another one in its place. To keep a
// state is therefore to keep its tree ([store.snapshotLocked]).
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: threadedStoreIndexer
// Differs: no lock of its own. All of it runs under WatchCache.mu, except [store.get] for the
// single writer. An index files an element under one value, not several.
type store struct {
	// Set by newStore, never changed.
	indexers map[string]IndexFunc

	// Guarded by WatchCache.mu.
	tree    tree
	indices map[string]map[string]map[string]*Element // index name, value, key
}

func newStore(indexers map[string]IndexFunc) *store {
	s := &store{indexers: indexers}
	s.replaceLocked(nil)
	return s
}

// replaceLocked forgets everything and holds elements instead. Snapshots of the old tree keep it.
func (s *store) replaceLocked(elements []*Element) {
	s.tree = newTree(elements)
	s.indices = map[string]map[string]map[string]*Element{}
	for name := range s.indexers {
		s.indices[name] = map[string]map[string]*Element{}
	}
	for e := range s.snapshotLocked().From("", "") {
		s.indexLocked(nil, e)
	}
}

// setLocked adds e, or puts it in the place of the element with the same key.
func (s *store) setLocked(e *Element) {
	var old *Element
	s.tree, old = s.tree.set(e)
	s.indexLocked(old, e)
}

// indexLocked files e in every index, and takes out old, which it replaces, if that is not nil.
func (s *store) indexLocked(old, e *Element) {
	for name, valueOf := range s.indexers {
		index, value := s.indices[name], valueOf(e)
		if old != nil && valueOf(old) != value {
			unindexLocked(index, valueOf(old), old.Key)
		}
		if index[value] == nil {
			index[value] = map[string]*Element{}
		}
		index[value][e.Key] = e // most updates leave the value alone: then e replaces old in the same set
	}
}

// deleteLocked removes the element at key, if there is one.
func (s *store) deleteLocked(key string) {
	var old *Element
	s.tree, old = s.tree.delete(key)
	if old == nil {
		return
	}
	for name, valueOf := range s.indexers {
		unindexLocked(s.indices[name], valueOf(old), key)
	}
}

func unindexLocked(index map[string]map[string]*Element, value, key string) {
	set := index[value]
	delete(set, key)
	if len(set) == 0 {
		delete(index, value) // or values that never come back would pile up
	}
}

// get returns the element at key, nil if there is none. The caller holds WatchCache.mu, or is the single writer.
func (s *store) get(key string) *Element {
	return s.tree.get(key)
}

// byIndexLocked returns the elements filed under value, in no order, and whether there is such an index.
func (s *store) byIndexLocked(name, value string) (elements []*Element, ok bool) {
	index, ok := s.indices[name]
	if !ok {
		return nil, false
	}
	set := index[value]
	elements = make([]*Element, 0, len(set))
	for _, e := range set {
		elements = append(elements, e)
	}
	return elements, true
}

// snapshotLocked returns the current state for keeps.
func (s *store) snapshotLocked() StoreSnapshot { return StoreSnapshot{s.tree} }

// StoreSnapshot is the store as it was at one moment. It never changes and needs no lock.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store.go: Snapshot
type StoreSnapshot struct {
	tree tree
}

// From yields the elements whose keys begin with prefix, in key order, beginning at the key from (inclusive) or, if
// from is "", at the first.
func (s StoreSnapshot) From(prefix, from string) iter.Seq[*Element] {
	return func(yield func(*Element) bool) {
		for leaf := range s.leaves(prefix, from) {
			for _, e := range leaf {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// List returns what From yields.
func (s StoreSnapshot) List(prefix, from string) []*Element {
	return slices.Concat(slices.Collect(s.leaves(prefix, from))...)
}

// leaves yields what From does, a leaf of the tree at a time: for all but the last leaf, one key says that all have the
// prefix.
func (s StoreSnapshot) leaves(prefix, from string) iter.Seq[[]*Element] {
	return func(yield func([]*Element) bool) {
		for leaf := range s.tree.leaves(max(prefix, from)) {
			if strings.HasPrefix(leaf[len(leaf)-1].Key, prefix) {
				if !yield(leaf) {
					return
				}
				continue
			}
			yield(leaf[:slices.IndexFunc(leaf, func(e *Element) bool { return !strings.HasPrefix(e.Key, prefix) })])
			return
		}
	}
}

// sortedBelow returns those of elements whose keys begin with prefix, ordered by key. It writes into elements.
func sortedBelow(elements []*Element, prefix string) []*Element {
	kept := slices.DeleteFunc(elements, func(e *Element) bool { return !strings.HasPrefix(e.Key, prefix) })
	slices.SortFunc(kept, func(a, b *Element) int { return strings.Compare(a.Key, b.Key) })
	return kept
}

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
// The order makes a list of one namespace a walk over neighbours, and paging a walk that begins in the middle. Whoever
// keeps the tree keeps this state ([store.snapshotLocked]): a change puts another [tree] in its place.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: threadedStoreIndexer
// Differs: no lock of its own. Everything but [store.get] on behalf of the single writer runs under WatchCache.mu.
// An index files an element under one value, not several.
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

// replaceLocked forgets everything and holds elements instead. The old tree is left to those who have snapshots of it.
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
		set := index[value]
		// Most updates leave the value alone: then e takes the place of old in the set, and no set comes or goes. The set is
		// asked, and not old, which has not been looked at for long and lies far away in memory.
		if old != nil && set[e.Key] == nil {
			unindexLocked(index, valueOf(old), old.Key)
		}
		if set == nil {
			set = map[string]*Element{}
			index[value] = set
		}
		set[e.Key] = e
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
func (s *store) get(key string) *Element { return s.tree.get(key) }

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
		s.tree.ascend(max(prefix, from), func(e *Element) bool {
			return strings.HasPrefix(e.Key, prefix) && yield(e)
		})
	}
}

// List returns what From yields.
func (s StoreSnapshot) List(prefix, from string) []*Element {
	return slices.AppendSeq(make([]*Element, 0, s.capacityFor(prefix)), s.From(prefix, from))
}

// capacityFor spares the list of a whole resource the growing of its slice.
func (s StoreSnapshot) capacityFor(prefix string) int {
	n := s.tree.length
	if n == 0 || !strings.HasPrefix(s.tree.first().Key, prefix) || !strings.HasPrefix(s.tree.last().Key, prefix) {
		return 0
	}
	return n
}

// sortedBelow returns those of elements whose keys begin with prefix, ordered by key. It writes into elements.
func sortedBelow(elements []*Element, prefix string) []*Element {
	kept := slices.DeleteFunc(elements, func(e *Element) bool { return !strings.HasPrefix(e.Key, prefix) })
	slices.SortFunc(kept, compareKeys)
	return kept
}

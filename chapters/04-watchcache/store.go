package watchcache

import (
	"iter"
	"slices"
	"strings"

	"github.com/google/btree"
)

// btreeDegree is upstream's: nodes hold 15 to 31 elements.
const btreeDegree = 16

// IndexFunc returns the value under which an index files an element.
type IndexFunc func(e *Element) string

// store holds the current elements, ordered by key, and the indices over them.
//
// The order makes a list of one namespace a walk over neighbours, and paging a walk that begins in the middle. The
// tree makes a copy of itself in constant time ([store.snapshotLocked]) by sharing its nodes with the copy; whoever writes
// next copies the few nodes on its way down.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: threadedStoreIndexer
// Differs: no lock of its own. Everything but [store.previous] on behalf of the single writer runs under WatchCache.mu.
// An index files an element under one value, not several.
type store struct {
	// Set by newStore, never changed.
	indexers map[string]IndexFunc

	// Guarded by WatchCache.mu.
	tree    *btree.BTreeG[*Element]
	indices map[string]map[string]map[string]*Element // index name, value, key
}

func newStore(indexers map[string]IndexFunc) *store {
	s := &store{indexers: indexers}
	s.replaceLocked(nil)
	return s
}

func lessByKey(a, b *Element) bool { return a.Key < b.Key }

// replaceLocked forgets everything and holds elements instead. The old tree is left to those who have snapshots of it.
func (s *store) replaceLocked(elements []*Element) {
	s.tree = btree.NewG(btreeDegree, lessByKey)
	s.indices = map[string]map[string]map[string]*Element{}
	for name := range s.indexers {
		s.indices[name] = map[string]map[string]*Element{}
	}
	for _, e := range elements {
		s.setLocked(e)
	}
}

// setLocked adds e, or puts it in the place of the element with the same key.
func (s *store) setLocked(e *Element) {
	old, existed := s.tree.ReplaceOrInsert(e)
	for name, value := range s.indexers {
		index := s.indices[name]
		// Most updates leave the value alone: then e takes the old one's place, and no set comes or goes.
		if existed && value(old) != value(e) {
			unindexLocked(index, value(old), old.Key)
		}
		set := index[value(e)]
		if set == nil {
			set = map[string]*Element{}
			index[value(e)] = set
		}
		set[e.Key] = e
	}
}

// deleteLocked removes the element with e's key, if there is one.
func (s *store) deleteLocked(e *Element) {
	old, existed := s.tree.Delete(e)
	if !existed {
		return
	}
	for name, value := range s.indexers {
		unindexLocked(s.indices[name], value(old), old.Key)
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
func (s *store) get(key string) *Element { return s.previous(&Element{Key: key}) }

// previous returns the element whose place e would take, nil if there is none. The caller holds WatchCache.mu, or is the
// single writer.
func (s *store) previous(e *Element) *Element {
	old, _ := s.tree.Get(e)
	return old
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
func (s *store) snapshotLocked() StoreSnapshot { return StoreSnapshot{s.tree.Clone()} }

// StoreSnapshot is the store as it was at one moment. It never changes and needs no lock.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store.go: Snapshot
type StoreSnapshot struct {
	tree *btree.BTreeG[*Element]
}

// From yields the elements whose keys begin with prefix, in key order, beginning at the key from (inclusive) or, if
// from is "", at the first.
func (s StoreSnapshot) From(prefix, from string) iter.Seq[*Element] {
	pivot := &Element{Key: max(prefix, from)}
	return func(yield func(*Element) bool) {
		s.tree.AscendGreaterOrEqual(pivot, func(e *Element) bool {
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
	first, ok := s.tree.Min()
	if !ok || !strings.HasPrefix(first.Key, prefix) {
		return 0
	}
	if last, _ := s.tree.Max(); !strings.HasPrefix(last.Key, prefix) {
		return 0
	}
	return s.tree.Len()
}

// sortedBelow returns those of elements whose keys begin with prefix, ordered by key. It writes into elements.
func sortedBelow(elements []*Element, prefix string) []*Element {
	kept := slices.DeleteFunc(elements, func(e *Element) bool { return !strings.HasPrefix(e.Key, prefix) })
	slices.SortFunc(kept, func(a, b *Element) int { return strings.Compare(a.Key, b.Key) })
	return kept
}
